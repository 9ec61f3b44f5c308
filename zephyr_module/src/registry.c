/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name: the search, and calls with checked arguments. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <opwest/registry.h>
#include <opwest/status.h>

/*
 * The hash must be the one in generator/opwest/render/perfect_hash.py: FNV-1a over the name, then
 * for each use a multiplication and shifts that spread every bit of it (the finaliser of
 * MurmurHash3).
 */
static uint32_t hash_name(const char *name, uint32_t seed)
{
	uint32_t hash = 2166136261U ^ seed;

	while (*name != '\0') {
		hash = (hash ^ (uint8_t)*name++) * 16777619U;
	}
	return hash;
}

static uint32_t spread(uint32_t hash)
{
	hash = (hash ^ (hash >> 16)) * 0x85ebca6bU;
	hash = (hash ^ (hash >> 13)) * 0xc2b2ae35U;
	return hash ^ (hash >> 16);
}

/* Scale a hash to 0 .. count - 1 by a multiplication, which is faster than a remainder. */
static uint32_t scale(uint32_t hash, uint32_t count)
{
	return (uint32_t)(((uint64_t)hash * count) >> 32);
}

const struct opwest_entry *opwest_find(const struct opwest_registry *registry, const char *name)
{
	if (registry->count == 0U) {
		return NULL;
	}

	const uint32_t hash = hash_name(name, registry->seed);
	const uint32_t bucket = scale(spread(hash), registry->bucket_count);
	const uint32_t moved = hash + registry->displacements[bucket] * 0x9e3779b9U;
	const struct opwest_entry *entry =
		&registry->entries[scale(spread(moved), registry->count)];

	return strcmp(entry->info->name, name) == 0 ? entry : NULL;
}

#define KIND(NAME, value, name, size, kind, exponent) [OPWEST_##NAME] = OPWEST_KIND_##kind,

static const uint8_t kinds[] = {OPWEST_DTYPES(KIND)};

/* Checks that an integer is a value of the type: adapters cast it without a check. */
static bool in_range(uint8_t dtype, int64_t number)
{
	const unsigned int unused = 64U - 8U * (unsigned int)opwest_dtype_size(dtype);

	switch (kinds[dtype]) {
	case OPWEST_KIND_SIGNED:
		return number >= -(INT64_MAX >> unused) - 1 && number <= INT64_MAX >> unused;
	case OPWEST_KIND_BOOLEAN:
		return number == 0 || number == 1;
	default: /* 64 bits: values above INT64_MAX are passed as negative numbers */
		return unused == 0U || (number >= 0 && (uint64_t)number <= UINT64_MAX >> unused);
	}
}

static const void *memory_of(const struct opwest_value *given)
{
	return given->kind == OPWEST_VALUE_IN ? given->as.in : given->as.out;
}

static bool fits(const struct opwest_tensor *declared, const struct opwest_value *given)
{
	if (given->dtype != declared->dtype) {
		return false;
	}
	if ((declared->flags & OPWEST_TENSOR_SCALAR) != 0U) {
		if (kinds[declared->dtype] == OPWEST_KIND_REAL) {
			return given->kind == OPWEST_VALUE_REAL;
		}
		return given->kind == OPWEST_VALUE_INTEGER &&
		       in_range(declared->dtype, given->as.integer);
	}
	if (given->kind !=
	    (declared->direction == OPWEST_IN ? OPWEST_VALUE_IN : OPWEST_VALUE_OUT)) {
		return false;
	}

	const uintptr_t address = (uintptr_t)memory_of(given);

	return address != 0U && address % OPWEST_TENSOR_ALIGN(declared->flags) == 0U &&
	       given->size >= declared->size;
}

/* Checks whether a result may have exactly the memory of an argument. */
static bool is_in_place(const struct opwest_tensor *result, const struct opwest_tensor *other)
{
	return result->direction == OPWEST_OUT && other->direction == OPWEST_IN &&
	       (result->flags & other->flags & OPWEST_TENSOR_IN_PLACE) != 0U;
}

/* Checks whether the memory of a result overlaps that of another argument. */
static bool overlaps(const struct opwest_operator *info, const struct opwest_value *args,
		     uint16_t index)
{
	const struct opwest_tensor *const result = &info->args[index];
	const void *const memory = memory_of(&args[index]);

	for (uint16_t i = 0; i < info->arg_count; i++) {
		const struct opwest_tensor *const other = &info->args[i];

		if (i == index || (other->flags & OPWEST_TENSOR_SCALAR) != 0U ||
		    (memory == memory_of(&args[i]) && is_in_place(result, other))) {
			continue;
		}
		if (opwest_overlap(memory, result->size, memory_of(&args[i]), other->size)) {
			return true;
		}
	}
	return false;
}

int opwest_call_check(const struct opwest_entry *entry, const struct opwest_value *args,
		      size_t count, const struct opwest_call_device *device)
{
	if (entry == NULL) {
		return -ENOENT;
	}

	const struct opwest_operator *info = entry->info;

	if (count != info->arg_count || (count > 0U && args == NULL)) {
		return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		if (!fits(&info->args[i], &args[i])) {
			return -EINVAL;
		}
	}
	for (uint16_t i = 0; i < info->arg_count; i++) {
		if (args[i].kind == OPWEST_VALUE_OUT && overlaps(info, args, i)) {
			return -EINVAL;
		}
	}
	if ((device != NULL) != (entry->requirement != NULL)) {
		return -ENODEV;
	}
	return entry->adapter == NULL ? -ENOTSUP : 0;
}

int opwest_call(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		const struct opwest_call_device *device)
{
	const int rc = opwest_call_check(entry, args, count, device);

	if (rc != 0) {
		return rc;
	}
	if (entry->requirement != NULL) {
		return entry->requirement->call(entry, args, device);
	}

	const int32_t code = entry->adapter(args, NULL);

	return code > 0 ? -EIO : (int)code;
}
