/* SPDX-License-Identifier: Apache-2.0 */
/* Written for opwest, in place of libsodium's file of the same name. */
#ifndef OPWEST_BUNDLE_UTILS_H_
#define OPWEST_BUNDLE_UTILS_H_

#include <stddef.h>
#include <string.h>

/* Only public data is hashed here: nothing requires that the compiler keeps these writes. */
static inline void sodium_memzero(void *data, size_t size)
{
	memset(data, 0, size);
}

#endif /* OPWEST_BUNDLE_UTILS_H_ */
