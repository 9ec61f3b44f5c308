/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that compilers call for copies, for images of toolchains without a C library that
 * an image can contain. Byte by byte: those of a C library are faster.
 */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);

/* Without the attribute GCC replaces the loops by calls of these functions. */
#if defined(__GNUC__) && !defined(__clang__)
#define LOOPS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#else
#define LOOPS __attribute__((no_builtin))
#endif

LOOPS void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	unsigned char *at = to;
	const unsigned char *source = from;

	while (size-- > 0U) {
		*at++ = *source++;
	}
	return to;
}

LOOPS void *memmove(void *to, const void *from, size_t size)
{
	unsigned char *at = to;
	const unsigned char *source = from;

	if (at <= source) {
		return memcpy(to, from, size);
	}
	while (size-- > 0U) {
		at[size] = source[size];
	}
	return to;
}

LOOPS void *memset(void *to, int value, size_t size)
{
	unsigned char *at = to;

	while (size-- > 0U) {
		*at++ = (unsigned char)value;
	}
	return to;
}

LOOPS int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *first = a;
	const unsigned char *second = b;

	for (size_t i = 0; i < size; i++) {
		if (first[i] != second[i]) {
			return first[i] < second[i] ? -1 : 1;
		}
	}
	return 0;
}
