/* SPDX-License-Identifier: Apache-2.0 */
/* An input of the fuzzer, consumed from its start, and what each fuzzer needs. */
#ifndef SOURCE_H_
#define SOURCE_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);           \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reset the models of subject.c, which the service serves: the state of earlier inputs. */
void subject_reset(void);

struct source {
	const uint8_t *data;
	size_t size;
};

/* Return a big-endian number of the given size; bytes beyond the end are 0. */
static inline uint64_t take(struct source *from, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++) {
		value = value << 8 | (from->size > 0U ? *from->data : 0U);
		from->data += from->size > 0U;
		from->size -= from->size > 0U;
	}
	return value;
}

#endif /* SOURCE_H_ */
