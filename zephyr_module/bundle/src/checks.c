/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a file in a slot, and the lowest accepted versions. */
#include <errno.h>
#include <string.h>

#include "bundle_internal.h"
#include "format_internal.h"

static const struct opwest_bundle_slot *slot_of(const struct opwest_bundles *bundles, uint8_t slot)
{
	return &bundles->config->storage->slots[slot];
}

bool opwest_bundle_check_file(const struct opwest_bundles *bundles, uint8_t slot, uint32_t size,
			      struct opwest_bundle_header *header,
			      struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundles_config *const config = bundles->config;
	const uint8_t *const data = slot_of(bundles, slot)->memory;
	const enum opwest_bundle_fault fault = opwest_bundle_parse(data, size, header);

	if (fault == OPWEST_BUNDLE_FORMAT) {
		return opwest_bundle_refuse(verdict, fault, OPWEST_BUNDLE_AT_FORMAT,
					    opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_FORMAT]),
					    OPWEST_BUNDLE_FORMAT_VERSION);
	}
	if (fault != OPWEST_BUNDLE_GOOD) {
		return opwest_bundle_refuse(verdict, fault, 0, header->length, size);
	}
	if (!opwest_bundle_signed(data, size, header, config->keys, config->key_count)) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_SIGNATURE, 0, 0U,
					    config->key_count);
	}
	if (header->kind == OPWEST_BUNDLE_LINKED && header->slot_address != (uintptr_t)data) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_SLOT,
					    OPWEST_BUNDLE_AT_SLOT_ADDRESS, header->slot_address,
					    (uintptr_t)data);
	}
	if (header->kind == OPWEST_BUNDLE_LLEXT && config->storage->api->link == NULL) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_KIND, OPWEST_BUNDLE_AT_KIND,
					    header->kind, OPWEST_BUNDLE_LINKED);
	}
	*verdict = (struct opwest_bundle_verdict){.fault = OPWEST_BUNDLE_GOOD};
	return opwest_bundle_abi_agrees(header, verdict);
}

/* The pointers of a loaded image are in memory of the loader: only NULL is refused. */
static bool find(const struct opwest_bundles *bundles, uint8_t slot,
		 const struct opwest_bundle_header *header,
		 const struct opwest_bundle_descriptor **descriptor,
		 struct opwest_bundle_extent *extent, struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	const uint8_t *const data = slot_of(bundles, slot)->memory;

	if (header->kind == OPWEST_BUNDLE_LLEXT) {
		const int rc = storage->api->link(storage, slot, header, descriptor);

		*extent = (struct opwest_bundle_extent){.begin = 1U, .end = UINTPTR_MAX};
		return rc == 0 || opwest_bundle_refuse(verdict,
						       rc == -ENOMEM ? OPWEST_BUNDLE_MEMORY
								     : OPWEST_BUNDLE_KIND,
						       rc, header->kind, OPWEST_BUNDLE_LINKED);
	}
	extent->begin = (uintptr_t)&data[header->image_offset];
	extent->end = extent->begin + header->image_size;
	*descriptor = (const struct opwest_bundle_descriptor
			       *)(uintptr_t)&data[header->descriptor_offset];
	return true;
}

bool opwest_bundle_load(const struct opwest_bundles *bundles, uint8_t slot,
			const struct opwest_bundle_header *header,
			const struct opwest_bundle_descriptor **descriptor,
			struct opwest_bundle_verdict *verdict)
{
	struct opwest_bundle_extent extent;
	const struct device *devices[OPWEST_BUNDLE_MOST_DEVICES];

	if (!find(bundles, slot, header, descriptor, &extent, verdict)) {
		return false;
	}
	if (opwest_bundle_describes(*descriptor, &extent, header, verdict) &&
	    opwest_bundle_assign(bundles->config, (*descriptor)->details->model, devices,
				 verdict)) {
		return true;
	}
	opwest_bundle_unload(bundles, slot, header);
	return false;
}

void opwest_bundle_unload(const struct opwest_bundles *bundles, uint8_t slot,
			  const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;

	if (header->kind == OPWEST_BUNDLE_LLEXT && storage->api->unlink != NULL) {
		(void)storage->api->unlink(storage, slot);
	}
}

/* A floor without a terminated name is damaged: like one that was never stored. */
static int load_floor(const struct opwest_bundles *bundles, uint16_t index,
		      struct opwest_bundle_floor *floor)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	const int rc =
		storage->api->load(storage, OPWEST_BUNDLE_FLOOR_ID(index), floor, sizeof(*floor));

	if (rc == 0 && (floor->name[0] == '\0' || floor->name[sizeof(floor->name) - 1U] != '\0')) {
		return -ENOENT;
	}
	return rc;
}

/* The floor of a name, or the first free record with version 0; -ENOSPC without one. */
static int find_floor(const struct opwest_bundles *bundles,
		      const struct opwest_bundle_header *header, uint16_t *index, uint32_t *version)
{
	struct opwest_bundle_floor floor;
	uint16_t unused = OPWEST_BUNDLE_FLOORS;

	for (uint16_t i = 0U; i < OPWEST_BUNDLE_FLOORS; i++) {
		const int rc = load_floor(bundles, i, &floor);

		if (rc == -ENOENT) {
			unused = unused == OPWEST_BUNDLE_FLOORS ? i : unused;
		} else if (rc != 0) {
			return rc;
		} else if (strcmp(floor.name, header->name) == 0) {
			*index = i;
			*version = floor.version;
			return 0;
		}
	}
	*index = unused;
	*version = 0U;
	return unused == OPWEST_BUNDLE_FLOORS ? -ENOSPC : 0;
}

bool opwest_bundle_check_floor(const struct opwest_bundles *bundles,
			       const struct opwest_bundle_header *header,
			       struct opwest_bundle_verdict *verdict)
{
	uint16_t index;
	uint32_t version;
	int rc;

	if (bundles->config->allows_downgrade) {
		return true;
	}
	rc = find_floor(bundles, header, &index, &version);
	if (rc != 0) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_STORAGE, rc, 0U, 0U);
	}
	if (header->version < version) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_DOWNGRADE,
					    OPWEST_BUNDLE_AT_VERSION, header->version, version);
	}
	return true;
}

int opwest_bundle_raise_floor(const struct opwest_bundles *bundles,
			      const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	struct opwest_bundle_floor floor = {.version = header->version};
	uint16_t index;
	uint32_t version;
	const int rc = find_floor(bundles, header, &index, &version);

	if (rc == -ENOSPC && bundles->config->allows_downgrade) {
		return 0; /* no floor is used */
	}
	if (rc != 0 || header->version <= version) {
		return rc; /* a model of version 0 needs no floor */
	}
	memcpy(floor.name, header->name, sizeof(floor.name));
	return storage->api->store(storage, OPWEST_BUNDLE_FLOOR_ID(index), &floor, sizeof(floor));
}
