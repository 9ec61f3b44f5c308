/* SPDX-License-Identifier: Apache-2.0 */
/* The output functions of the programs of these tests. */
#ifndef WRITING_H_
#define WRITING_H_

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SLOT         128U

static inline void text(const char *what)
{
	port_write(what);
}

static inline void character(char what)
{
	const char both[2] = {what, '\0'};

	port_write(both);
}

static inline void number(int64_t value)
{
	char digits[24];
	char *at = digits + sizeof(digits) - 1;
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	*at = '\0';
	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest != 0);
	if (value < 0) {
		*--at = '-';
	}
	character(' ');
	text(at);
}

/* An errno: library-specific values are mapped to fixed ones. */
static inline void errno_of(int rc)
{
	number(rc == -EALREADY  ? -100000
	       : rc == -ETIMEDOUT ? -100001
	       : rc == -ENOTSUP   ? -100002
	       : rc == -EBADMSG   ? -100003
	       : rc == -ECANCELED ? -100004
				: rc);
}

static inline void bytes(const void *data, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	char line[2 * SLOT + 2];
	size_t used = 0;

	line[used++] = ' ';
	for (size_t i = 0; i < size && i < SLOT; i++) {
		line[used++] = digits[((const uint8_t *)data)[i] >> 4];
		line[used++] = digits[((const uint8_t *)data)[i] & 15];
	}
	line[used] = '\0';
	text(line);
}

static inline void name(const char *what)
{
	text(" ");
	text(what == NULL ? "NULL" : what);
}

/* Text in quotes. */
static inline void quoted(const char *what)
{
	if (what == NULL) {
		text(" NULL");
		return;
	}
	text(" \"");
	for (; *what != '\0'; what++) {
		if (*what == '"' || *what == '\\') {
			character('\\');
		}
		character(*what);
	}
	text("\"");
}

/* Shared pointers: the index of the first equal one. */
struct seen {
	const void *at[200];
	size_t count;
};

/* Linkers may merge equal data of two models: only pointers shared within a model are compared. */
static struct seen of_model;
/* Write the index, and return whether the pointer is new. */
static inline bool identity(struct seen *seen, const void *pointer)
{
	size_t i = 0;

	if (pointer == NULL) {
		text(" NULL");
		return false;
	}
	while (i < seen->count && seen->at[i] != pointer) {
		i++;
	}
	text(" #");
	number((int64_t)i);
	if (i < seen->count) {
		return false;
	}
	if (seen->count < COUNT(seen->at)) {
		seen->at[seen->count++] = pointer;
	}
	return true;
}

#endif /* WRITING_H_ */
