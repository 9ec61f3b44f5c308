/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of the storage, the start, and the state of the slots.
 *
 * A = active, T = trying, P = previous, - = no slot; a stored record is the old or the new one
 * after a power cut. Each line is one operation of the storage, with the record during it, and the
 * model that a start selects if the power is cut in it or after it, before the next one.
 *
 *   operation              stored record     start after a cut
 *   ---------------------- ----------------- -------------------------------------------------
 *   (ready)                A=a T=- P=p       a
 *   begin: store           A=a T=- P=-       a            only if p is the slot of the upload
 *   begin: erase p         A=a T=- P=-       a            nothing refers to the slot
 *   write, ..., write      A=a T=- P=-       a
 *   install: checks        A=a T=- P=-       a            no code of the image is executed
 *   install: store         A=a T=p P=-       a            the start sets T=- (unconfirmed)
 *   install: vectors       A=a T=p P=-       a            so does it after a reset or a watchdog
 *   confirm: store floor   A=a T=p P=-       a            the floor of p may be raised
 *   confirm: store         A=p T=- P=a       p
 *   roll back: store       A=a T=p P=p       a            p is intact
 *   roll back: vectors     A=a T=p P=p       a
 *   roll back: store       A=p T=- P=a       p
 *   end of a trial: store  A=a T=- P=p       a
 *   start: store           A=a T=- P=p       a            T=-; one more crash
 *   start: store           A=p T=- P=-       p            a is damaged, or crashed too often
 *
 * So a slot is erased only if the stored record does not refer to it, a model is active only if its
 * golden vectors agreed, and a model that was never tried is never run after a start. Without a
 * record, or with a damaged one, no slot is used: nothing there is known to be confirmed.
 */
#include <errno.h>
#include <string.h>

#include "bundle_internal.h"
#include "format_internal.h"

/* Records are stored and compared as bytes. */
OPWEST_STATIC_ASSERT(sizeof(struct opwest_bundle_record) == 12U, "the record has no padding");
OPWEST_STATIC_ASSERT(sizeof(struct opwest_bundle_floor) == OPWEST_BUNDLE_NAME_SIZE + 4U,
		     "a floor has no padding");

void opwest_bundle_use_record(struct opwest_bundles *bundles,
			      const struct opwest_bundle_record *record)
{
	opwest_port_mutex_lock(&bundles->lock);
	bundles->record = *record;
	opwest_port_mutex_unlock(&bundles->lock);
}

int opwest_bundle_store(struct opwest_bundles *bundles, const struct opwest_bundle_record *record)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	const int rc =
		storage->api->store(storage, OPWEST_BUNDLE_RECORD_ID, record, sizeof(*record));

	if (rc == 0) {
		opwest_bundle_use_record(bundles, record);
	}
	return rc;
}

static bool is_slot(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	return slot == OPWEST_BUNDLE_NO_SLOT || slot < storage->slot_count;
}

static bool is_record(const struct opwest_bundle_storage *storage,
		      const struct opwest_bundle_record *record)
{
	return record->version == OPWEST_BUNDLE_RECORD_VERSION &&
	       is_slot(storage, record->active) && is_slot(storage, record->trying) &&
	       is_slot(storage, record->previous) &&
	       (record->active == OPWEST_BUNDLE_NO_SLOT ||
		(record->active != record->trying && record->active != record->previous));
}

/* A damaged record, and one of another firmware's slots, is like none. */
static int load_record(const struct opwest_bundle_storage *storage,
		       struct opwest_bundle_record *record)
{
	const int rc =
		storage->api->load(storage, OPWEST_BUNDLE_RECORD_ID, record, sizeof(*record));

	if (rc != 0 && rc != -ENOENT && rc != -EBADMSG) {
		return rc;
	}
	if (rc != 0 || !is_record(storage, record)) {
		*record = (struct opwest_bundle_record){
			.version = OPWEST_BUNDLE_RECORD_VERSION,
			.active = OPWEST_BUNDLE_NO_SLOT,
			.trying = OPWEST_BUNDLE_NO_SLOT,
			.previous = OPWEST_BUNDLE_NO_SLOT,
		};
	}
	return 0;
}

static bool is_usable_slot(const struct opwest_bundle_slot *slot)
{
	return slot->memory != NULL && (uintptr_t)slot->memory % OPWEST_BUNDLE_IMAGE_ALIGN == 0U &&
	       slot->write_size > 0U && slot->write_size <= OPWEST_BUNDLE_MOST_WRITE_SIZE &&
	       opwest_bundle_is_power(slot->write_size) && slot->size % slot->write_size == 0U;
}

static bool is_usable_storage(const struct opwest_bundle_storage *storage)
{
	if (storage == NULL || storage->api == NULL || storage->slots == NULL ||
	    storage->slot_count < 2U || storage->slot_count == OPWEST_BUNDLE_NO_SLOT) {
		return false;
	}
	for (uint8_t i = 0U; i < storage->slot_count; i++) {
		if (!is_usable_slot(&storage->slots[i])) {
			return false;
		}
	}
	return storage->api->erase != NULL && storage->api->write != NULL &&
	       storage->api->synchronise != NULL && storage->api->load != NULL &&
	       storage->api->store != NULL;
}

static bool is_usable(const struct opwest_bundles_config *config)
{
	return config != NULL && is_usable_storage(config->storage) && config->keys != NULL &&
	       config->key_count > 0U && config->host != NULL &&
	       config->host->version >= OPWEST_HOST_VERSION &&
	       (config->devices != NULL || config->device_count == 0U);
}

/* Check and load the model of a slot, and make it the current one. */
static bool use_slot(struct opwest_bundles *bundles, uint8_t slot, uint8_t *fault)
{
	struct opwest_bundle_header header;
	struct opwest_bundle_verdict verdict;
	const struct opwest_bundle_descriptor *descriptor;

	if (slot == OPWEST_BUNDLE_NO_SLOT) {
		return false;
	}
	if (!opwest_bundle_check_file(bundles, slot, bundles->config->storage->slots[slot].size,
				      &header, &verdict) ||
	    !opwest_bundle_load(bundles, slot, &header, &descriptor, &verdict)) {
		*fault = verdict.fault;
		return false;
	}
	opwest_bundle_publish(bundles, slot, &header, descriptor);
	return true;
}

/* The previous model is the active one from now on: the other one is not returned to. */
static void fall_back(struct opwest_bundle_record *record, uint8_t fault)
{
	record->active = record->previous;
	record->previous = OPWEST_BUNDLE_NO_SLOT;
	record->crashes = 0U;
	record->fault = fault;
}

/* Select the model of this start, and change the record accordingly. */
static void select_model(struct opwest_bundles *bundles, struct opwest_bundle_record *record)
{
	const uint8_t limit = bundles->config->crash_limit;
	uint8_t fault = OPWEST_BUNDLE_GOOD;
	uint8_t unused;

	if (record->trying != OPWEST_BUNDLE_NO_SLOT) {
		record->trying = OPWEST_BUNDLE_NO_SLOT;
		record->fault = OPWEST_BUNDLE_UNCONFIRMED;
	}
	if (limit > 0U && record->crashes >= limit &&
	    use_slot(bundles, record->previous, &unused)) {
		fall_back(record, OPWEST_BUNDLE_CRASHES);
	} else if (!use_slot(bundles, record->active, &fault) &&
		   use_slot(bundles, record->previous, &unused)) {
		fall_back(record, fault);
	}
	if (bundles->current != NULL && record->crashes < limit) {
		record->crashes++;
	}
}

int opwest_bundles_start(struct opwest_bundles *bundles, const struct opwest_bundles_config *config)
{
	struct opwest_bundle_record record;
	int rc;

	if (!is_usable(config)) {
		return -EINVAL;
	}
	memset(bundles, 0, sizeof(*bundles));
	opwest_port_mutex_init(&bundles->installation);
	opwest_port_mutex_init(&bundles->lock);
	opwest_port_sem_init(&bundles->drained, 0U, 1U);
	opwest_port_sem_init(&bundles->resumed, 0U, INT32_MAX);
	bundles->config = config;
	bundles->slot = OPWEST_BUNDLE_NO_SLOT;
	bundles->upload_slot = OPWEST_BUNDLE_NO_SLOT;
	rc = load_record(config->storage, &record);
	if (rc != 0) {
		return rc;
	}
	bundles->record = record;
	select_model(bundles, &record);
	if (memcmp(&record, &bundles->record, sizeof(record)) != 0) {
		rc = opwest_bundle_store(bundles, &record);
	}
	if (rc != 0) {
		if (bundles->current != NULL) {
			opwest_bundle_publish(bundles, OPWEST_BUNDLE_NO_SLOT, NULL, NULL);
		}
		return rc;
	}
	bundles->started = true;
	return bundles->current != NULL ? 0 : -ENOENT;
}

int opwest_bundles_healthy(struct opwest_bundles *bundles)
{
	struct opwest_bundle_record record;
	int rc = 0;

	opwest_port_mutex_lock(&bundles->installation);
	record = bundles->record;
	if (bundles->started && record.crashes > 0U) {
		record.crashes = 0U;
		rc = opwest_bundle_store(bundles, &record);
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

static void describe(const struct opwest_bundles *bundles, uint8_t slot,
		     struct opwest_bundle_info *info)
{
	const struct opwest_bundle_slot *const memory = &bundles->config->storage->slots[slot];
	const struct opwest_bundle_record *const record = &bundles->record;

	memset(info, 0, sizeof(*info));
	info->address = (uintptr_t)memory->memory;
	info->size = memory->size;
	info->is_active = slot == record->active;
	info->is_trying = slot == record->trying;
	info->is_previous = slot == record->previous;
	info->is_target = slot == opwest_bundle_target(bundles);
	if (opwest_bundle_check_file(bundles, slot, memory->size, &info->header, &info->verdict)) {
		(void)opwest_bundle_check_floor(bundles, &info->header, &info->verdict);
	}
}

int opwest_bundles_list(struct opwest_bundles *bundles, uint8_t slot,
			struct opwest_bundle_info *info)
{
	if (!bundles->started || slot >= bundles->config->storage->slot_count) {
		return -ENOENT;
	}
	opwest_port_mutex_lock(&bundles->installation);
	describe(bundles, slot, info);
	opwest_port_mutex_unlock(&bundles->installation);
	return 0;
}

void opwest_bundles_state(struct opwest_bundles *bundles, struct opwest_bundle_record *record)
{
	opwest_port_mutex_lock(&bundles->lock);
	*record = bundles->record;
	opwest_port_mutex_unlock(&bundles->lock);
}
