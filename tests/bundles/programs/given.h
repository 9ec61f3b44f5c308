/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs are given: words, bytes in hexadecimal, and files. */
#ifndef GIVEN_H_
#define GIVEN_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/bundles.h>

#include "bundle_internal.h"

#define IS(name) (strcmp(words[0], name) == 0)

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct file {
	uint8_t *data;
	uint32_t size;
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
};

/* "-": none */
static inline size_t bytes_of(const char *hex, uint8_t *bytes)
{
	const size_t size = strcmp(hex, "-") == 0 ? 0U : strlen(hex) / 2U;

	for (size_t i = 0U; i < size; i++) {
		unsigned int byte = 0U;

		(void)sscanf(&hex[2U * i], "%2x", &byte);
		bytes[i] = (uint8_t)byte;
	}
	return size;
}

static inline struct file read_file(const char *path)
{
	FILE *const stream = fopen(path, "rb");
	struct file file;

	if (stream == NULL) {
		exit(2);
	}
	(void)fseek(stream, 0, SEEK_END);
	file.size = (uint32_t)ftell(stream);
	rewind(stream);
	file.data = malloc(file.size == 0U ? 1U : file.size);
	if (fread(file.data, 1U, file.size, stream) != file.size ||
	    !opwest_bundle_sha512(file.data, file.size, file.digest)) {
		exit(2);
	}
	(void)fclose(stream);
	return file;
}

/* threads.c. Returns false for another command. */
bool thread_command(char **words, struct opwest_session *sessions);

#endif /* GIVEN_H_ */
