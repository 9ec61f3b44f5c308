/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The status of a run, which is the first failure, and the search for overlapping buffers.
 */
#ifndef OPWEST_STATUS_H_
#define OPWEST_STATUS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The step of a status without failure. */
#define OPWEST_NO_STEP UINT16_MAX

/** The argument of a status without an invalid one, and a structure that is NULL itself. */
#define OPWEST_NO_ARGUMENT UINT16_MAX

/** The device of a status without one. */
#define OPWEST_STATUS_NO_DEVICE UINT8_MAX

/** The operation that failed. */
enum opwest_hook {
	/** The operator that the step calls. */
	OPWEST_HOOK_OPERATOR = 0,
	/** The check that the device is ready, and an accelerator. */
	OPWEST_HOOK_READY = 1,
	OPWEST_HOOK_ACTIVATE = 2,
	OPWEST_HOOK_OPEN = 3,
	OPWEST_HOOK_CLOSE = 4,
	OPWEST_HOOK_DEACTIVATE = 5,
	/** Waiting for the device: a step launched at or after @ref opwest_status.step failed. */
	OPWEST_HOOK_SYNC = 6,
	/** Cache maintenance before a step or after waiting for it. */
	OPWEST_HOOK_CACHE = 7,
	/** No operation: an input is NULL, misaligned, overlaps, or is not reached by its devices.
	 */
	OPWEST_HOOK_INPUT = 8,
	/** No operation: an output is NULL, misaligned, overlaps, or is not reached by its devices.
	 */
	OPWEST_HOOK_OUTPUT = 9,
	/** No operation: a pool of the workspace is NULL, misaligned or overlaps. */
	OPWEST_HOOK_POOL = 10,
	/** No operation: a device differs from that of open, or the device context is NULL. */
	OPWEST_HOOK_DEVICE = 11,
	/** The properties of the device, or the check of a program. */
	OPWEST_HOOK_CHECK = 12,
	/** Loading a program. */
	OPWEST_HOOK_LOAD = 13,
	/** No operation: `<model>_cancel()` ended the run before, or at a wait for, the step. */
	OPWEST_HOOK_CANCEL = 14,
};

/**
 * The first failure of the latest open, run, close, or call on a device by name. A call that is
 * refused because the workspace owns a device (-EBUSY) does not change it.
 */
struct opwest_status {
	/** The return value of the operator or hook; 0 after a successful run. */
	int32_t code;
	/** The failed step, from 0 in the order of execution; OPWEST_NO_STEP if there is none. */
	uint16_t step;
	/** enum opwest_hook */
	uint8_t hook;
	/** The index of the device whose hook failed, or OPWEST_STATUS_NO_DEVICE. */
	uint8_t device;
	/**
	 * The index of the invalid member in its structure (OPWEST_HOOK_INPUT to
	 * OPWEST_HOOK_DEVICE), from 0; OPWEST_NO_ARGUMENT if the structure is NULL.
	 */
	uint16_t argument;
};

/** The initialiser of a status without failure. */
#define OPWEST_STATUS_INIT                                                                         \
	{0, OPWEST_NO_STEP, OPWEST_HOOK_OPERATOR, OPWEST_STATUS_NO_DEVICE, OPWEST_NO_ARGUMENT}

/** @brief Clear a status. */
static inline void opwest_status_clear(struct opwest_status *status)
{
	status->code = 0;
	status->step = OPWEST_NO_STEP;
	status->hook = OPWEST_HOOK_OPERATOR;
	status->device = OPWEST_STATUS_NO_DEVICE;
	status->argument = OPWEST_NO_ARGUMENT;
}

/**
 * @brief Record a failed step, unless a failure is recorded: of a wait for room in a queue.
 *
 * Called by generated code only.
 *
 * @param status The status.
 * @param model  The model's name, for the log.
 * @param step   The step, counted from 0.
 * @param code   The return value of the operator, not 0.
 *
 * @retval -EIO if the recorded code is positive
 * @return The recorded code otherwise: a negative errno
 */
int opwest_status_failed(struct opwest_status *status, const char *model, uint16_t step,
			 int32_t code);

/**
 * @brief Record a failed hook.
 *
 * Called by the runtime and by generated code only.
 *
 * @param status The status.
 * @param model  The model's name, for the log.
 * @param device The device's name, for the log.
 * @param hook   The hook.
 * @param index  The index of the device in the context.
 * @param step   The step, or OPWEST_NO_STEP.
 * @param code   The return value of the hook, not 0.
 *
 * @retval -EIO if @p code is positive
 * @return @p code otherwise: a negative errno
 */
int opwest_status_hook_failed(struct opwest_status *status, const char *model, const char *device,
			      enum opwest_hook hook, uint8_t index, uint16_t step, int32_t code);

/**
 * @brief Record an invalid argument.
 *
 * Called by generated code only.
 *
 * @param status   The status.
 * @param hook     Its kind: OPWEST_HOOK_INPUT to OPWEST_HOOK_DEVICE.
 * @param argument Its index, or OPWEST_NO_ARGUMENT.
 *
 * @retval -EINVAL Always.
 */
int opwest_status_invalid(struct opwest_status *status, uint8_t hook, uint16_t argument);

/**
 * @brief Record a buffer of the caller that a device cannot reach.
 *
 * Called by generated code only.
 *
 * @param status   The status.
 * @param hook     OPWEST_HOOK_INPUT or OPWEST_HOOK_OUTPUT.
 * @param argument Its index.
 *
 * @retval -EFAULT Always.
 */
int opwest_status_unreached(struct opwest_status *status, uint8_t hook, uint16_t argument);

/**
 * @brief Record that a run is cancelled.
 *
 * Called by the runtime and by generated code only.
 *
 * @param status The status.
 * @param step   The step before which the run ends, or the first launched step of the wait that
 *               ends; OPWEST_NO_STEP for calls by name.
 *
 * @retval -ECANCELED Always.
 */
int opwest_status_cancelled(struct opwest_status *status, uint16_t step);

/**
 * @brief Return the name of a hook.
 *
 * @param hook A value of enum opwest_hook.
 *
 * @return Its name ("sync"), or NULL if there is no such hook
 */
const char *opwest_hook_name(uint8_t hook);

/**
 * @brief Return the error of opening an open workspace or closing a closed one.
 *
 * For code that is generated without the C library's headers, where this errno has no fixed value.
 *
 * @retval -EALREADY Always.
 */
int opwest_status_already(void);

/**
 * @brief Check whether two ranges of bytes have a byte in common.
 *
 * @param a      The first range.
 * @param size_a Its size, at least 1.
 * @param b      The second range.
 * @param size_b Its size, at least 1.
 *
 * @retval true  They overlap.
 * @retval false They do not.
 */
static inline bool opwest_overlap(const void *a, uintptr_t size_a, const void *b, uintptr_t size_b)
{
	/* One comparison for both ends: -size_a < a - b < size_b. */
	return (uintptr_t)a - (uintptr_t)b + (size_a - 1U) < size_a + size_b - 1U;
}

/** The numbers before the sizes in the table of opwest_buffers_overlap(). */
#define OPWEST_BUFFERS_COUNTS 4U

/**
 * @brief Find a buffer of a run that overlaps another buffer, a pool or the workspace.
 *
 * Two inputs may overlap: no step writes an input.
 *
 * @param table     The size of the workspace's structure in bytes; the numbers of inputs, outputs
 *                  and pools; the sizes of all inputs, outputs and pools in bytes.
 * @param inputs    The structure of the inputs: pointers without padding.
 * @param outputs   The structure of the outputs.
 * @param workspace The workspace, whose first members are the pools.
 *
 * @return 0 if there is none; otherwise OPWEST_HOOK_INPUT or OPWEST_HOOK_OUTPUT in bits 16 to 31,
 *         and the index of the buffer in its structure in bits 0 to 15
 */
uint32_t opwest_buffers_overlap(const uint32_t *table, const void *inputs, const void *outputs,
				const void *workspace);

/**
 * @brief Find a buffer of a frame that overlaps a buffer of the frame in flight.
 *
 * Inputs of both frames may overlap.
 *
 * @param table         That of opwest_buffers_overlap().
 * @param inputs        The inputs of the new frame.
 * @param outputs       The outputs of the new frame.
 * @param other_inputs  The inputs of the frame in flight.
 * @param other_outputs The outputs of the frame in flight.
 *
 * @return As opwest_buffers_overlap()
 */
uint32_t opwest_buffers_of_frames(const uint32_t *table, const void *inputs, const void *outputs,
				  const void *other_inputs, const void *other_outputs);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_STATUS_H_ */
