/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The state of a model: tensors in the workspace that last from one run to the next.
 */
#ifndef OPWEST_STATE_H_
#define OPWEST_STATE_H_

#include <stdint.h>

#include <opwest/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The index of @ref opwest_state_tensor.next of a state that steps write themselves. */
#define OPWEST_STATE_NO_NEXT UINT16_MAX

/** One state. */
struct opwest_state_tensor {
	/** The initial content, which is repeated; NULL: zeros. */
	const void *initial;
	/** Bytes of @ref initial: those of the state, or of one element. */
	uint32_t initial_size;
	/** The offset in the pool, bytes. */
	uint32_t offset;
	/** Bytes. */
	uint32_t size;
	/** Index into the model's pools, which are the first members of the workspace. */
	uint16_t pool;
	/** Index into `<model>_buffers`. */
	uint16_t buffer;
	/** The tensor that a successful run copies to the state; see OPWEST_STATE_NO_NEXT. */
	struct opwest_binding next;
};

/** The state of a model. */
struct opwest_state {
	/** @ref count states, in the manifest's order. */
	const struct opwest_state_tensor *tensors;
	uint32_t count;
	/** Bytes of saved state. */
	uint32_t size;
	/** A hash of the names, types and order of the states: its low and its high half. */
	uint32_t layout_low;
	uint32_t layout_high;
};

/**
 * @brief Set the state of a workspace to its initial content.
 *
 * Called by generated code only.
 *
 * @param state     The state of the model.
 * @param workspace The workspace of the model, with its pools.
 */
void opwest_state_reset(const struct opwest_state *state, void *workspace);

/**
 * @brief Save the state of a workspace. Called by generated code only.
 *
 * @param state     The state of the model.
 * @param workspace The open workspace.
 * @param data      The memory for the state.
 * @param size      Its size, bytes.
 *
 * @retval 0       Saved.
 * @retval -EINVAL @p data is NULL.
 * @retval -ENOMEM @p size is less than @ref opwest_state.size.
 */
int opwest_state_save(const struct opwest_state *state, const void *workspace, void *data,
		      uint32_t size);

/**
 * @brief Restore a saved state. Called by generated code only.
 *
 * @param state     The state of the model.
 * @param workspace The open workspace. It is unchanged after an error.
 * @param data      The saved state.
 * @param size      Its size, bytes.
 *
 * @retval 0        Restored.
 * @retval -EINVAL  @p data is NULL.
 * @retval -EBADMSG The data is not the state of a model with these states.
 */
int opwest_state_restore(const struct opwest_state *state, void *workspace, const void *data,
			 uint32_t size);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_STATE_H_ */
