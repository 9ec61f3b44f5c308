/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <opwest/registry.h>

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
