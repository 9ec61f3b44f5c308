/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The storage of bundles: slots in flash, and records that survive a reset.
 *
 * Zephyr's flash and NVS implement it on a board, tests implement it on a host.
 */
#ifndef OPWEST_BUNDLE_PORT_H_
#define OPWEST_BUNDLE_PORT_H_

#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/bundle_format.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest size of a write, bytes. */
#define OPWEST_BUNDLE_MOST_WRITE_SIZE 64U

/** A slot in memory-mapped flash. */
struct opwest_bundle_slot {
	/** The address at which the processor reads and executes it. */
	const uint8_t *memory;
	/** Bytes. */
	uint32_t size;
	/** The size and alignment of writes, bytes: a power of two up to the largest one. */
	uint32_t write_size;
	/** The value of erased bytes. */
	uint8_t erased;
};

struct opwest_bundle_storage;

/** The functions of a storage. All return 0 or a negative errno. */
struct opwest_bundle_storage_api {
	/** Erases all of a slot. */
	int (*erase)(const struct opwest_bundle_storage *storage, uint8_t slot);
	/** Writes to erased flash: offset and size are multiples of the slot's write_size. */
	int (*write)(const struct opwest_bundle_storage *storage, uint8_t slot, uint32_t offset,
		     const uint8_t *data, uint32_t size);
	/**
	 * Makes written flash visible to data and instruction fetches of all processors; -ENOTSUP
	 * if the system has no way to do it.
	 */
	int (*synchronise)(const struct opwest_bundle_storage *storage, uint8_t slot);
	/** Reads a record of exactly `size` bytes; -ENOENT without one, -EBADMSG if it is damaged.
	 */
	int (*load)(const struct opwest_bundle_storage *storage, uint16_t id, void *data,
		    uint32_t size);
	/** Replaces a record: after a reset at any time it is the old or the new one. */
	int (*store)(const struct opwest_bundle_storage *storage, uint16_t id, const void *data,
		     uint32_t size);
	/**
	 * Loads an image of OPWEST_BUNDLE_LLEXT and finds its descriptor; NULL if the firmware
	 * cannot.
	 */
	int (*link)(const struct opwest_bundle_storage *storage, uint8_t slot,
		    const struct opwest_bundle_header *header,
		    const struct opwest_bundle_descriptor **descriptor);
	/** Unloads the image of a slot. */
	int (*unlink)(const struct opwest_bundle_storage *storage, uint8_t slot);
};

/** A storage: constant. */
struct opwest_bundle_storage {
	const struct opwest_bundle_storage_api *api;
	/** @ref slot_count slots, at least two. */
	const struct opwest_bundle_slot *slots;
	uint8_t slot_count;
};

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLE_PORT_H_ */
