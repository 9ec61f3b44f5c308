/* SPDX-License-Identifier: Apache-2.0 */
/* Written for opwest, in place of libsodium's file of the same name. */
#ifndef OPWEST_BUNDLE_EXPORT_H_
#define OPWEST_BUNDLE_EXPORT_H_

#define SODIUM_EXPORT

/* private/common.h checks that a build system has set this. */
#ifndef CONFIGURED
#define CONFIGURED 1
#endif

#endif /* OPWEST_BUNDLE_EXPORT_H_ */
