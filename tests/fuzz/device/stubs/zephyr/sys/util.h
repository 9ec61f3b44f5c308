/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#ifndef STUB_UTIL_H_
#define STUB_UTIL_H_
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zephyr/toolchain.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define ARG_UNUSED(argument) ((void)(argument))
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

static inline int stub_digit(char c)
{
	const char *const digits = "0123456789abcdef", *const upper = "0123456789ABCDEF";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	if (at != NULL) {
		return (int)(at - digits);
	}
	at = c != '\0' ? strchr(upper, c) : NULL;
	return at != NULL ? (int)(at - upper) : -1;
}

static inline size_t hex2bin(const char *hex, size_t length, uint8_t *out, size_t room)
{
	if (room < length / 2U) {
		return 0;
	}
	for (size_t i = 0; i < length / 2U; i++) {
		const int high = stub_digit(hex[2U * i]), low = stub_digit(hex[2U * i + 1U]);

		if (high < 0 || low < 0) {
			return 0;
		}
		out[i] = (uint8_t)(high * 16 + low);
	}
	return length / 2U;
}

static inline size_t bin2hex(const uint8_t *data, size_t size, char *hex, size_t room)
{
	if (room < 2U * size + 1U) {
		return 0;
	}
	for (size_t i = 0; i < size; i++) {
		(void)snprintf(&hex[2U * i], 3, "%02x", data[i]);
	}
	return 2U * size;
}
#endif
