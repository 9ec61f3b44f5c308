/* SPDX-License-Identifier: Apache-2.0 */
/* For compilers without a C library: the functions that the runtime and the operators of these tests use. */
#ifndef BARE_STRING_H_
#define BARE_STRING_H_

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);
int strcmp(const char *a, const char *b);

#endif /* BARE_STRING_H_ */
