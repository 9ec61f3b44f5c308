/* SPDX-License-Identifier: Apache-2.0 */
/* An input of the fuzzer, consumed from its start. */
#ifndef SOURCE_H_
#define SOURCE_H_

#include <stddef.h>
#include <stdint.h>

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
