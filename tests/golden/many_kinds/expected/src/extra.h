/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTRA_H_
#define EXTRA_H_

extern const int extra;

#endif /* EXTRA_H_ */
