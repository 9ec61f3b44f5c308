/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What a model passes to an operator that runs on an accelerator.
 *
 * Operators whose manifest entry has `device: {launch: true}` take a
 * `const struct opwest_launch *` as their last argument.
 */
#ifndef OPWEST_LAUNCH_H_
#define OPWEST_LAUNCH_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;

/** The program of an accelerator: constant, in flash. */
struct opwest_program {
	/** The name that operators may require, for messages. */
	const char *name;
	/** @ref size bytes, aligned to 16. */
	const uint8_t *data;
	uint32_t size;
};

/** One launch of an operator on an accelerator; valid during the call of the operator. */
struct opwest_launch {
	/** The device, owned by the caller. */
	const struct device *dev;
	/** The program that the device has loaded: that of the step, if it has one; NULL for none.
	 */
	const struct opwest_program *program;
	/** The longest wait for work, milliseconds, or OPWEST_FOREVER. */
	int32_t timeout_ms;
	/** The step of the run, from 0; OPWEST_NO_STEP for a call by name. */
	uint16_t step;
	/**
	 * A number that no other unfinished launch of this owner has, from 0: less than the
	 * queue depth of the manifest or the driver, whichever is smaller. Always 0 if both are
	 * unlimited.
	 */
	uint16_t slot;
};

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_LAUNCH_H_ */
