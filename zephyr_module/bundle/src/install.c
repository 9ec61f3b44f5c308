/* SPDX-License-Identifier: Apache-2.0 */
/* Installation, confirmation and roll-back: slots.c contains the table of states. */
#include <errno.h>
#include <string.h>

#include "bundle_internal.h"

/* A model that is about to become the current one. */
struct candidate {
	uint8_t slot;
	const struct opwest_bundle_descriptor *descriptor;
	struct opwest_bundle_header header;
};

static uint32_t size_of(const struct opwest_bundles *bundles, uint8_t slot)
{
	return bundles->config->storage->slots[slot].size;
}

static int result_of(const struct opwest_bundle_verdict *verdict)
{
	return verdict->fault == OPWEST_BUNDLE_STORAGE ? (int)verdict->detail : -EBADMSG;
}

static int storage_failed(struct opwest_bundle_verdict *verdict, int rc)
{
	(void)opwest_bundle_refuse(verdict, OPWEST_BUNDLE_STORAGE, rc, 0U, 0U);
	return rc;
}

/* The checks that execute nothing of the image. It is loaded if the result is true. */
static bool check(const struct opwest_bundles *bundles, struct candidate *candidate, uint32_t size,
		  struct opwest_bundle_verdict *verdict)
{
	if (!opwest_bundle_check_file(bundles, candidate->slot, size, &candidate->header,
				      verdict) ||
	    !opwest_bundle_load(bundles, candidate->slot, &candidate->header,
				&candidate->descriptor, verdict)) {
		return false;
	}
	if (opwest_bundle_check_memory(bundles, candidate->descriptor, verdict) &&
	    opwest_bundle_check_floor(bundles, &candidate->header, verdict)) {
		return true;
	}
	opwest_bundle_unload(bundles, candidate->slot, &candidate->header);
	return false;
}

/* The record after the trial. `previous` is the slot to return to. */
static struct opwest_bundle_record confirmed(const struct opwest_bundles *bundles, uint8_t slot,
					     uint8_t previous)
{
	struct opwest_bundle_record record = bundles->record;

	record.active = slot;
	record.trying = OPWEST_BUNDLE_NO_SLOT;
	record.previous = previous;
	record.crashes = 0U;
	record.fault = OPWEST_BUNDLE_GOOD;
	return record;
}

/* The floor first: a confirmed model never has a version above its floor, at any cut. */
static int confirm(struct opwest_bundles *bundles, const struct opwest_bundle_header *header,
		   uint8_t slot, uint8_t previous)
{
	const struct opwest_bundle_record record = confirmed(bundles, slot, previous);
	const int rc = opwest_bundle_raise_floor(bundles, header);

	return rc != 0 ? rc : opwest_bundle_store(bundles, &record);
}

/*
 * The previous model remains. A record that cannot be stored names the trial still: the next start
 * ends it, and the next upload stores the record first.
 */
static void abandon(struct opwest_bundles *bundles, const struct candidate *candidate,
		    uint8_t fault)
{
	struct opwest_bundle_record record = bundles->record;

	record.trying = OPWEST_BUNDLE_NO_SLOT;
	record.fault = fault;
	if (opwest_bundle_store(bundles, &record) != 0) {
		opwest_bundle_use_record(bundles, &record);
	}
	opwest_bundle_unload(bundles, candidate->slot, &candidate->header);
}

/* Run the golden vectors of a loaded candidate, and make it the current model. */
static int try_out(struct opwest_bundles *bundles, const struct candidate *candidate, bool confirms,
		   struct opwest_bundle_verdict *verdict)
{
	struct opwest_bundle_record record = bundles->record;
	int rc;

	record.trying = candidate->slot;
	rc = opwest_bundle_store(bundles, &record);
	if (rc != 0) {
		abandon(bundles, candidate, OPWEST_BUNDLE_STORAGE);
		return storage_failed(verdict, rc);
	}
	opwest_bundle_drain(bundles);
	if (!opwest_bundle_try(bundles, candidate->descriptor, verdict)) {
		rc = -EBADMSG;
	} else if (confirms) {
		rc = confirm(bundles, &candidate->header, candidate->slot, bundles->slot);
		rc = rc != 0 ? storage_failed(verdict, rc) : 0;
	}
	if (rc != 0) {
		abandon(bundles, candidate, verdict->fault);
	} else {
		opwest_bundle_publish(bundles, candidate->slot, &candidate->header,
				      candidate->descriptor);
	}
	opwest_bundle_resume(bundles);
	return rc;
}

static bool reads_back(const struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];

	return (opwest_bundle_sha512(storage->slots[bundles->upload_slot].memory,
				     bundles->upload_size, digest) &&
		memcmp(digest, bundles->digest, sizeof(digest)) == 0) ||
	       opwest_bundle_refuse(verdict, OPWEST_BUNDLE_READ_BACK, 0, 0U, 0U);
}

/* A file that continues behind its signatures is not what its author signed. */
static bool is_whole(const struct opwest_bundles *bundles, const struct candidate *candidate,
		     struct opwest_bundle_verdict *verdict)
{
	const uint8_t *const data = bundles->config->storage->slots[candidate->slot].memory;
	const size_t total = opwest_bundle_total(data, bundles->upload_size, &candidate->header);

	return total == bundles->upload_size ||
	       opwest_bundle_refuse(verdict, OPWEST_BUNDLE_SIZE, 0, total, bundles->upload_size);
}

static int install(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundle_storage *const storage = bundles->config->storage;
	struct candidate candidate = {.slot = bundles->upload_slot};
	const int rc = storage->api->synchronise(storage, candidate.slot);

	if (rc != 0) {
		return storage_failed(verdict, rc);
	}
	if (!reads_back(bundles, verdict) ||
	    !check(bundles, &candidate, bundles->upload_size, verdict)) {
		return result_of(verdict);
	}
	if (!is_whole(bundles, &candidate, verdict)) {
		opwest_bundle_unload(bundles, candidate.slot, &candidate.header);
		return -EBADMSG;
	}
	return try_out(bundles, &candidate, !bundles->config->waits_for_confirmation, verdict);
}

int opwest_bundles_install(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict)
{
	int rc;

	memset(verdict, 0, sizeof(*verdict));
	opwest_port_mutex_lock(&bundles->installation);
	if (!bundles->started) {
		rc = -EPERM;
	} else if (bundles->record.trying != OPWEST_BUNDLE_NO_SLOT) {
		rc = -EBUSY;
	} else if (bundles->upload_slot == OPWEST_BUNDLE_NO_SLOT ||
		   bundles->upload_offset < bundles->upload_size) {
		rc = -EPERM;
	} else {
		rc = install(bundles, verdict);
		bundles->upload_slot = OPWEST_BUNDLE_NO_SLOT;
		bundles->upload_offset = 0U;
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

int opwest_bundles_confirm(struct opwest_bundles *bundles)
{
	int rc = -EPERM;

	opwest_port_mutex_lock(&bundles->installation);
	if (bundles->started && bundles->record.trying != OPWEST_BUNDLE_NO_SLOT) {
		rc = confirm(bundles, &bundles->header, bundles->record.trying,
			     bundles->record.active);
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

/* Replace the current model while runs are drained; without a trial, nothing of it is executed. */
static void replace(struct opwest_bundles *bundles, const struct candidate *candidate)
{
	opwest_bundle_drain(bundles);
	if (candidate == NULL) {
		opwest_bundle_publish(bundles, OPWEST_BUNDLE_NO_SLOT, NULL, NULL);
	} else {
		opwest_bundle_publish(bundles, candidate->slot, &candidate->header,
				      candidate->descriptor);
	}
	opwest_bundle_resume(bundles);
}

/*
 * The active model was confirmed: its version and its golden vectors are not checked again. A
 * session whose memory is too small for it, which was added during the trial, reports it when it
 * runs.
 */
static int end_trial(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict)
{
	struct opwest_bundle_record record = bundles->record;
	struct candidate candidate = {.slot = record.active};
	const bool has_active = record.active != OPWEST_BUNDLE_NO_SLOT;
	int rc;

	if (has_active &&
	    (!opwest_bundle_check_file(bundles, record.active, size_of(bundles, record.active),
				       &candidate.header, verdict) ||
	     !opwest_bundle_load(bundles, record.active, &candidate.header, &candidate.descriptor,
				 verdict))) {
		return result_of(verdict);
	}
	record.trying = OPWEST_BUNDLE_NO_SLOT;
	record.fault = OPWEST_BUNDLE_UNCONFIRMED;
	rc = opwest_bundle_store(bundles, &record);
	if (rc != 0) {
		if (has_active) {
			opwest_bundle_unload(bundles, candidate.slot, &candidate.header);
		}
		return storage_failed(verdict, rc);
	}
	replace(bundles, has_active ? &candidate : NULL);
	return has_active ? 0 : -ENOENT;
}

static int roll_back(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict)
{
	struct candidate candidate = {.slot = bundles->record.previous};

	if (candidate.slot == OPWEST_BUNDLE_NO_SLOT) {
		return -ENOENT;
	}
	if (!check(bundles, &candidate, size_of(bundles, candidate.slot), verdict)) {
		return result_of(verdict);
	}
	return try_out(bundles, &candidate, true, verdict);
}

int opwest_bundles_roll_back(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict)
{
	int rc;

	memset(verdict, 0, sizeof(*verdict));
	opwest_port_mutex_lock(&bundles->installation);
	if (!bundles->started) {
		rc = -ENOENT;
	} else if (bundles->record.trying != OPWEST_BUNDLE_NO_SLOT) {
		rc = end_trial(bundles, verdict);
	} else {
		rc = roll_back(bundles, verdict);
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}
