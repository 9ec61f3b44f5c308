/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief RAM that has the behaviour of flash, and whose power can be cut: for tests.
 *
 * An operation is the erasure of one block, or the write of one unit (`erase-block-size` and
 * `write-block-size` in devicetree).
 */
#ifndef OPWEST_FLASH_EMUL_H_
#define OPWEST_FLASH_EMUL_H_

#include <stdint.h>

#include <zephyr/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where in an operation the power is cut. */
enum opwest_flash_emul_cut {
	/** Nothing of it has happened. */
	OPWEST_FLASH_EMUL_BEFORE = 0,
	/** The first half of its bytes has changed, and a half of the bits of the next byte. */
	OPWEST_FLASH_EMUL_INSIDE = 1,
	/** All of it has happened. */
	OPWEST_FLASH_EMUL_AFTER = 2,
};

/** The state of a device, in memory that survives a warm reset. */
struct opwest_flash_emul_state {
	/** Set by the driver, after it has erased all blocks of a new device. */
	uint32_t magic;
	/** The number of operations: the test sets it to 0. */
	uint32_t operations;
	/** Those of them that erased a block. */
	uint32_t erased;
	/** Calls of flash_write(). */
	uint32_t writes;
	/** Bytes written. */
	uint32_t written;
	/** The number of the operation at which the power is cut, from 1; 0: it is not cut. */
	uint32_t cut_at;
	/** enum opwest_flash_emul_cut */
	uint32_t cut;
	/** The offset of the operation at which the power was cut, in the flash. */
	uint32_t cut_offset;
	/** For the test; 0 in a new device. */
	uint32_t test[16];
};

/**
 * @brief Return the state of a device.
 *
 * @param dev A device with the compatible "opwest,flash-emul".
 *
 * @return Its state, which the test may change
 */
struct opwest_flash_emul_state *opwest_flash_emul_state(const struct device *dev);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_FLASH_EMUL_H_ */
