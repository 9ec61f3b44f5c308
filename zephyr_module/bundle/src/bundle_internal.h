/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The functions that the parts of the manager share.
 */
#ifndef OPWEST_BUNDLE_INTERNAL_H_
#define OPWEST_BUNDLE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/bundle_format.h>
#include <opwest/bundles.h>

#include "format_internal.h"

/** The version of struct opwest_bundle_record. */
#define OPWEST_BUNDLE_RECORD_VERSION 1U
/** The identifiers of records in the storage: the state, then the floors. */
#define OPWEST_BUNDLE_RECORD_ID      0U
#define OPWEST_BUNDLE_FLOOR_ID(i)    ((uint16_t)(1U + (i)))

/** @brief Compute the SHA-512 of bytes; false if the back end failed. */
bool opwest_bundle_sha512(const uint8_t *data, size_t size,
			  uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE]);

/** @brief Verify one Ed25519 signature (RFC 8032, pure). */
bool opwest_bundle_ed25519(const uint8_t signature[OPWEST_BUNDLE_VALUE_SIZE],
			   const struct opwest_bundle_key *key, const uint8_t *data, size_t size);

/** @brief Set a verdict. Returns false, for `return opwest_bundle_refuse(...)`. */
bool opwest_bundle_refuse(struct opwest_bundle_verdict *verdict, enum opwest_bundle_fault fault,
			  int32_t detail, uint64_t found, uint64_t expected);

/** The memory of a workspace. */
struct opwest_bundle_placement {
	struct opwest_bundle_workspace *workspace;
	uint8_t *pools[OPWEST_BUNDLE_MOST_POOLS];
	/** A pointer for each output, each to memory for it; NULL in sessions. */
	void **outputs;
};

/**
 * @brief Place a workspace, its pools, and optionally memory for the outputs.
 *
 * @param memory       The memory.
 * @param descriptor   The image, checked.
 * @param with_outputs For golden vectors.
 * @param placement    Set to the addresses.
 * @param verdict      Set to OPWEST_BUNDLE_MEMORY if it does not fit; detail unchanged.
 */
bool opwest_bundle_place(const struct opwest_bundle_memory *memory,
			 const struct opwest_bundle_descriptor *descriptor, bool with_outputs,
			 struct opwest_bundle_placement *placement,
			 struct opwest_bundle_verdict *verdict);

/** @brief Find the devices of a model in those of the firmware, in the order of the model. */
bool opwest_bundle_assign(const struct opwest_bundles_config *config,
			  const struct opwest_model *model,
			  const struct device *devices[OPWEST_BUNDLE_MOST_DEVICES],
			  struct opwest_bundle_verdict *verdict);

/** The memory that the pointers of an image refer to. */
struct opwest_bundle_extent {
	uintptr_t begin;
	/** The first address behind it. */
	uintptr_t end;
};

/** @brief Check all of a descriptor that the firmware reads, against the header. */
bool opwest_bundle_describes(const struct opwest_bundle_descriptor *descriptor,
			     const struct opwest_bundle_extent *extent,
			     const struct opwest_bundle_header *header,
			     struct opwest_bundle_verdict *verdict);

/** @brief Check format, signature, slot and ABI record of a file in a slot. */
bool opwest_bundle_check_file(const struct opwest_bundles *bundles, uint8_t slot, uint32_t size,
			      struct opwest_bundle_header *header,
			      struct opwest_bundle_verdict *verdict);

/**
 * @brief Find the descriptor of a file that opwest_bundle_check_file() accepts, and check it and
 * its devices. The image is loaded if the result is true.
 */
bool opwest_bundle_load(const struct opwest_bundles *bundles, uint8_t slot,
			const struct opwest_bundle_header *header,
			const struct opwest_bundle_descriptor **descriptor,
			struct opwest_bundle_verdict *verdict);

/** @brief Unload an image, if its kind requires it. */
void opwest_bundle_unload(const struct opwest_bundles *bundles, uint8_t slot,
			  const struct opwest_bundle_header *header);

/** @brief Check that a version is not older than the lowest accepted one. */
bool opwest_bundle_check_floor(const struct opwest_bundles *bundles,
			       const struct opwest_bundle_header *header,
			       struct opwest_bundle_verdict *verdict);

/** @brief Raise the lowest accepted version of a model to that of a header. */
int opwest_bundle_raise_floor(const struct opwest_bundles *bundles,
			      const struct opwest_bundle_header *header);

/** @brief Store the record, then use it. It is unchanged after an error. */
int opwest_bundle_store(struct opwest_bundles *bundles, const struct opwest_bundle_record *record);

/** @brief Use a record, which the storage need not have. */
void opwest_bundle_use_record(struct opwest_bundles *bundles,
			      const struct opwest_bundle_record *record);

/** @brief Return the slot of the next upload, or OPWEST_BUNDLE_NO_SLOT. */
uint8_t opwest_bundle_target(const struct opwest_bundles *bundles);

/** @brief Wait until no run is in progress; runs that begin later wait. */
void opwest_bundle_drain(struct opwest_bundles *bundles);

/** @brief End opwest_bundle_drain(). */
void opwest_bundle_resume(struct opwest_bundles *bundles);

/** @brief Close the workspace of a session, while runs are drained. */
void opwest_bundle_close_session(struct opwest_session *session);

/**
 * @brief Make a loaded image the current one, while runs are drained; all sessions are closed.
 *
 * @param bundles    The manager.
 * @param slot       Its slot, or OPWEST_BUNDLE_NO_SLOT.
 * @param header     Its header; NULL without an image.
 * @param descriptor Its descriptor, or NULL.
 */
void opwest_bundle_publish(struct opwest_bundles *bundles, uint8_t slot,
			   const struct opwest_bundle_header *header,
			   const struct opwest_bundle_descriptor *descriptor);

/** A workspace for golden vectors. */
struct opwest_bundle_trial {
	const struct opwest_bundle_descriptor *descriptor;
	struct opwest_bundle_placement placement;
	const struct device *devices[OPWEST_BUNDLE_MOST_DEVICES];
};

/** @brief Check the memory of all sessions and of the trial. */
bool opwest_bundle_check_memory(const struct opwest_bundles *bundles,
				const struct opwest_bundle_descriptor *descriptor,
				struct opwest_bundle_verdict *verdict);

/** @brief Open a workspace in the memory of the trial, or in that of the first session. */
bool opwest_bundle_trial_open(struct opwest_bundles *bundles,
			      const struct opwest_bundle_descriptor *descriptor,
			      struct opwest_bundle_trial *trial,
			      struct opwest_bundle_verdict *verdict);

/** @brief Run a golden vector; the outputs are in the placement. */
int opwest_bundle_trial_run(struct opwest_bundle_trial *trial, uint32_t vector);

/** @brief Close it. */
void opwest_bundle_trial_close(struct opwest_bundle_trial *trial);

/** @brief Run all golden vectors. */
bool opwest_bundle_try(struct opwest_bundles *bundles,
		       const struct opwest_bundle_descriptor *descriptor,
		       struct opwest_bundle_verdict *verdict);

#endif /* OPWEST_BUNDLE_INTERNAL_H_ */
