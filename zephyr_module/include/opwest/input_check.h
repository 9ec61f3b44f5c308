/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The comparison of every input of a step before and after its call: CONFIG_OPWEST_CHECK_INPUTS.
 *
 * Arguments with direction `in` are copied to the heap before a step, constants too, and compared
 * when the step has ended; those of an asynchronous step after the wait for its device. Bytes that
 * the step may write as another argument (`in_place`) are not compared. For tests: without the
 * option the image contains none of this.
 */
#ifndef OPWEST_INPUT_CHECK_H_
#define OPWEST_INPUT_CHECK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opwest_point;

/** An input that an operator wrote. */
struct opwest_input_change {
	const char *operator_name;
	/** The argument, with direction `in`. */
	const struct opwest_tensor *argument;
	/** Its first element that changed, in C order. */
	uint32_t element;
	uint16_t step;
	/** The element before the step. */
	const void *before;
	/** The element after it; NULL if the memory is read-only, and the write ended the program. */
	const void *after;
};

/**
 * @brief Begin a run: the memory of its tensors. Called by generated code.
 *
 * @param details   The metadata of the model.
 * @param inputs    The structure of inputs; NULL: the run is not compared.
 * @param outputs   The structure of outputs; NULL: the run is not compared.
 * @param workspace The workspace, whose first members are the pools; NULL: the run is not compared.
 */
void opwest_input_check_run(const struct opwest_details *details, const void *inputs,
			    const void *outputs, const void *workspace);

/**
 * @brief Begin a point: copy the inputs of its step.
 *
 * @param points The points of the model.
 * @param index  The point.
 */
void opwest_input_check_begin(const struct opwest_point *points, uint32_t index);

/**
 * @brief End a point: compare the inputs of the steps that it completes.
 *
 * @param points The points of the model.
 * @param index  The point.
 */
void opwest_input_check_end(const struct opwest_point *points, uint32_t index);

/**
 * @brief Return the number of steps compared since the start. Without memory for a copy a step is
 * left out.
 *
 * @return Steps
 */
uint32_t opwest_input_check_count(void);

/**
 * @brief Find the argument of a running step that contains an address, after a fault there.
 *
 * @param address The address.
 * @param change  The change, without @ref opwest_input_change.after.
 *
 * @retval true  @p change is set.
 * @retval false No input of a running step is there.
 */
bool opwest_input_check_find(const void *address, struct opwest_input_change *change);

/**
 * @brief Print a change: "step 0 (f) wrote its input 'x': element 3 was 1, is 2".
 *
 * @param text   The text, terminated.
 * @param size   Its size, bytes.
 * @param change The change.
 */
void opwest_input_change_print(char *text, size_t size, const struct opwest_input_change *change);

/**
 * @brief Called for the first change of each step. A test can define it; on Zephyr the default prints the change.
 *
 * @param change The change.
 */
void opwest_input_changed(const struct opwest_input_change *change);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_INPUT_CHECK_H_ */
