/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup by any name, and opwest_call() with arguments of any kind: buffers have exactly the declared
 * size, so that the sanitizer detects wrong arguments that an adapter accepts.
 */
#include <string.h>

#include <opwest/registry.h>

#include "many_kinds.h"
#include "many_kinds_internal.h"
#include "source.h"

#define ARGUMENTS 20
#define LARGEST 512

/* Make an argument: mostly one that fits, with single fields that do not. */
static void *make(struct source *from, const struct opwest_tensor *expected, struct opwest_value *value)
{
	static const uint8_t kinds[] = {OPWEST_VALUE_IN, OPWEST_VALUE_OUT, OPWEST_VALUE_INTEGER, OPWEST_VALUE_REAL};
	const uint8_t odd = (uint8_t)take(from, 1);
	const bool scalar = expected != NULL && (expected->flags & OPWEST_TENSOR_SCALAR) != 0U;
	void *block = NULL;

	memset(value, 0, sizeof(*value));
	value->dtype = expected != NULL ? expected->dtype : 0U;
	if (scalar) {
		const bool real = value->dtype == OPWEST_FLOAT32 || value->dtype == OPWEST_FLOAT64;

		value->kind = real ? OPWEST_VALUE_REAL : OPWEST_VALUE_INTEGER;
		if (real) {
			const uint64_t bits = take(from, 8);

			memcpy(&value->as.real, &bits, sizeof(bits));
		} else {
			value->as.integer = (int64_t)((odd & 1U) != 0U ? take(from, 8) : take(from, 1));
		}
	} else {
		size_t size = expected != NULL ? expected->size : 8U;

		if ((odd & 2U) != 0U) {
			size = take(from, 2) % LARGEST;
		}
		/* Operators may require 64: the adapter must reject a block at another address. */
		CHECK(posix_memalign(&block, 64, size + 64U) == 0);
		free(block);
		block = (odd & 4U) != 0U ? malloc(size + (size == 0U)) : aligned_alloc(64, (size + 64U) / 64U * 64U);
		memset(block, (int)take(from, 1), size);
		value->kind = expected != NULL && expected->direction != OPWEST_IN ? OPWEST_VALUE_OUT : OPWEST_VALUE_IN;
		value->as.out = (odd & 8U) != 0U ? NULL : block;
		value->size = size;
	}
	if ((odd & 16U) != 0U) {
		value->kind = (odd & 32U) != 0U ? (uint8_t)take(from, 1) : kinds[take(from, 1) % 4U];
	}
	if ((odd & 64U) != 0U) {
		value->dtype = (uint8_t)take(from, 1);
	}
	return block;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source from = {data, size};
	const uint8_t how = (uint8_t)take(&from, 1);
	const struct opwest_entry *entry = NULL;
	struct opwest_value values[ARGUMENTS];
	void *blocks[ARGUMENTS] = {0};
	size_t count;

	if ((how & 1U) != 0U) {
		const size_t length = from.size < 40U ? from.size : take(&from, 1) % 40U;
		char *name = calloc(1, length + 1U);

		memcpy(name, from.data, length < from.size ? length : from.size);
		entry = opwest_find(&many_kinds_registry, name);
		CHECK(entry == NULL || strcmp(entry->info->name, name) == 0);
		free(name);
	} else {
		const struct opwest_entry *all = many_kinds_registry.entries;

		entry = &all[take(&from, 1) % many_kinds_registry.count];
		CHECK(opwest_find(&many_kinds_registry, entry->info->name) == entry);
	}
	count = entry != NULL ? entry->info->arg_count : 1U;
	if ((how & 2U) != 0U) {
		count = take(&from, 1) % ARGUMENTS;
	}
	for (size_t i = 0; i < count; i++) {
		blocks[i] = make(&from, entry != NULL && i < entry->info->arg_count ? &entry->info->args[i] : NULL,
				 &values[i]);
	}
	/* Operators of this model have no device argument: a given device must be rejected. */
	(void)opwest_call(entry, (how & 4U) != 0U ? NULL : values, count,
			  (how & 8U) != 0U ? (const struct opwest_call_device *)(const void *)&from : NULL);
	for (size_t i = 0; i < count; i++) {
		free(blocks[i]);
	}
	return 0;
}
