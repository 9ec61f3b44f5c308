/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Buffers of the caller that overlap each other, a pool or the workspace. For generated code
 * and the runtime.
 */
#ifndef OPWEST_BUFFERS_H_
#define OPWEST_BUFFERS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#endif /* OPWEST_BUFFERS_H_ */
