/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "bundle_internal.h"

static const struct opwest_bundle_slot *slot_of(const struct opwest_bundles *bundles)
{
	return &bundles->config->storage->slots[bundles->upload_slot];
}

/* The previous model is overwritten only if no other slot is free. */
uint8_t opwest_bundle_target(const struct opwest_bundles *bundles)
{
	const struct opwest_bundle_record *const record = &bundles->record;
	uint8_t target = OPWEST_BUNDLE_NO_SLOT;

	for (uint8_t i = 0U; i < bundles->config->storage->slot_count; i++) {
		if (i == record->active || i == record->trying || i == bundles->slot) {
			continue;
		}
		if (i != record->previous) {
			return i;
		}
		target = i;
	}
	return target;
}

/*
 * The stored record must not refer to the slot when its content changes: a signed file that was
 * never tried would be a previous or even the active model. A record that could not be stored
 * before, after a failure of the storage, is stored here too.
 */
static int forget(struct opwest_bundles *bundles, uint8_t slot)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	struct opwest_bundle_record record = bundles->record;
	struct opwest_bundle_record stored;
	const int rc =
		storage->api->load(storage, OPWEST_BUNDLE_RECORD_ID, &stored, sizeof(stored));

	if (record.previous == slot) {
		record.previous = OPWEST_BUNDLE_NO_SLOT;
	}
	if (rc == 0 && memcmp(&stored, &record, sizeof(record)) == 0) {
		return 0;
	}
	if (rc == -ENOENT && record.active == OPWEST_BUNDLE_NO_SLOT) {
		return 0; /* the first model */
	}
	return rc != 0 && rc != -ENOENT && rc != -EBADMSG ? rc
							  : opwest_bundle_store(bundles, &record);
}

static int begin(struct opwest_bundles *bundles, uint8_t slot, uint32_t size,
		 const uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE])
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	int rc;

	if (slot == OPWEST_BUNDLE_NO_SLOT) {
		slot = opwest_bundle_target(bundles);
	}
	if (slot >= storage->slot_count) {
		return -ENOENT;
	}
	if (slot == bundles->record.active || slot == bundles->slot) {
		return -EBUSY;
	}
	if (size > storage->slots[slot].size) {
		return -EFBIG;
	}
	bundles->upload_slot = OPWEST_BUNDLE_NO_SLOT;
	rc = forget(bundles, slot);
	if (rc == 0) {
		rc = storage->api->erase(storage, slot);
	}
	if (rc == 0) {
		bundles->upload_slot = slot;
		bundles->upload_size = size;
		bundles->upload_offset = 0U;
		bundles->rest_size = 0U;
		memcpy(bundles->digest, digest, OPWEST_BUNDLE_DIGEST_SIZE);
	}
	return rc;
}

static bool continues(const struct opwest_bundles *bundles, uint8_t slot, uint32_t size,
		      const uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE])
{
	return bundles->upload_slot != OPWEST_BUNDLE_NO_SLOT &&
	       (slot == OPWEST_BUNDLE_NO_SLOT || slot == bundles->upload_slot) &&
	       bundles->upload_size == size &&
	       memcmp(bundles->digest, digest, OPWEST_BUNDLE_DIGEST_SIZE) == 0;
}

int opwest_bundles_begin(struct opwest_bundles *bundles, uint8_t slot, uint32_t size,
			 const uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE], uint32_t *offset)
{
	int rc = 0;

	opwest_port_mutex_lock(&bundles->installation);
	if (!bundles->started) {
		rc = -EPERM;
	} else if (bundles->record.trying != OPWEST_BUNDLE_NO_SLOT) {
		rc = -EBUSY;
	} else if (!continues(bundles, slot, size, digest)) {
		rc = begin(bundles, slot, size, digest);
	}
	*offset = rc == 0 ? bundles->upload_offset : 0U;
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

/* Write whole units; the beginning of the next unit is in `rest`. */
static int put(struct opwest_bundles *bundles, const uint8_t *data, uint32_t size)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	const uint32_t unit = slot_of(bundles)->write_size;
	uint32_t at = bundles->upload_offset - bundles->rest_size;
	int rc = 0;

	if (bundles->rest_size > 0U) {
		const uint32_t space = unit - bundles->rest_size;
		const uint32_t part = size < space ? size : space;

		memcpy(&bundles->rest[bundles->rest_size], data, part);
		bundles->rest_size = (uint8_t)(bundles->rest_size + part);
		data += part;
		size -= part;
		if (bundles->rest_size < unit) {
			return 0;
		}
		rc = storage->api->write(storage, bundles->upload_slot, at, bundles->rest, unit);
		bundles->rest_size = 0U;
		at += unit;
	}

	const uint32_t whole = size - size % unit;

	if (rc == 0 && whole > 0U) {
		rc = storage->api->write(storage, bundles->upload_slot, at, data, whole);
	}
	if (rc == 0) {
		memcpy(bundles->rest, &data[whole], size - whole);
		bundles->rest_size = (uint8_t)(size - whole);
	}
	return rc;
}

static int finish(struct opwest_bundles *bundles)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	const struct opwest_bundle_slot *const slot = slot_of(bundles);

	if (bundles->upload_offset < bundles->upload_size || bundles->rest_size == 0U) {
		return 0;
	}
	memset(&bundles->rest[bundles->rest_size], slot->erased,
	       slot->write_size - bundles->rest_size);

	const uint32_t at = bundles->upload_offset - bundles->rest_size;

	bundles->rest_size = 0U;
	return storage->api->write(storage, bundles->upload_slot, at, bundles->rest,
				   slot->write_size);
}

static int write_part(struct opwest_bundles *bundles, uint32_t offset, const uint8_t *data,
		      uint32_t size)
{
	int rc;

	if (!bundles->started || bundles->upload_slot == OPWEST_BUNDLE_NO_SLOT) {
		return -EPERM;
	}
	if (offset > bundles->upload_size || size > bundles->upload_size - offset) {
		return -EFBIG;
	}
	if (offset != bundles->upload_offset || size == 0U) {
		return 0;
	}
	rc = put(bundles, data, size);
	bundles->upload_offset += size;
	if (rc == 0) {
		rc = finish(bundles);
	}
	if (rc != 0) { /* the content of the slot is unknown: the upload begins again */
		bundles->upload_slot = OPWEST_BUNDLE_NO_SLOT;
		bundles->upload_offset = 0U;
	}
	return rc;
}

int opwest_bundles_write(struct opwest_bundles *bundles, uint32_t offset, const uint8_t *data,
			 uint32_t size, uint32_t *next)
{
	int rc;

	opwest_port_mutex_lock(&bundles->installation);
	rc = write_part(bundles, offset, data, size);
	*next = bundles->upload_offset;
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}
