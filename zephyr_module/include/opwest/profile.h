/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The points of a model's run: their measurement, and the comparison of the inputs of steps.
 *
 * CONFIG_OPWEST_PROFILE: measurement. The counts are in the workspace.
 *
 * CONFIG_OPWEST_CHECK_INPUTS: comparison, for tests. Arguments with direction `in` are copied to
 * the heap before a step, constants too, and compared when the step has ended; those of an
 * asynchronous step after the wait for its device. Bytes that the step may write as another
 * argument
 * (`in_place`) are not compared.
 *
 * Without the options the image contains none of this, and the code of run is unchanged.
 */
#ifndef OPWEST_PROFILE_H_
#define OPWEST_PROFILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/model.h>
#if defined(CONFIG_OPWEST_PROFILE) && defined(__ZEPHYR__)
#include <zephyr/sys/iterable_sections.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The kinds of points. */
enum opwest_point_kind {
	/** The whole run: checks, opening and closing devices, and all other points. Point 0. */
	OPWEST_POINT_RUN = 0,
	/** A synchronous operator, from its call to its return. */
	OPWEST_POINT_STEP = 1,
	/** An asynchronous operator: only the call that enqueues its work. */
	OPWEST_POINT_LAUNCH = 2,
	/** Waiting for all launched steps of a device. */
	OPWEST_POINT_WAIT = 3,
	/** Cache maintenance of one tensor of a step. */
	OPWEST_POINT_CACHE = 4,
	/** The copy of a tensor to a state at the end of the run. */
	OPWEST_POINT_COPY = 5,
};

/** A part of run: constant. */
struct opwest_point {
	/** The operator; for OPWEST_POINT_WAIT the device, for OPWEST_POINT_RUN the model. */
	const char *name;
	/**
	 * The step, from 0; for OPWEST_POINT_WAIT its first; for OPWEST_POINT_RUN OPWEST_NO_STEP.
	 */
	uint16_t step;
	/** The device of the step or wait, by its place in the context, or OPWEST_NO_DEVICE. */
	uint16_t device;
	/** enum opwest_point_kind */
	uint32_t kind;
};

/** @cond INTERNAL_HIDDEN */
/* The initialiser of a point: an argument for each member. */
#define OPWEST_POINT(_name, _step, _device, _kind)                                                 \
	{                                                                                          \
		.name = (_name),                                                                   \
		.step = (_step),                                                                   \
		.device = (_device),                                                               \
		.kind = (_kind),                                                                   \
	}
/** @endcond */

/** The cycles of a point: see opwest_profile_frequency(). */
struct opwest_measure {
	/** The sum over @ref runs. */
	uint64_t total;
	uint64_t last;
	uint64_t min;
	uint64_t max;
	/** The counter at the last begin of the point. */
	uint64_t begun;
	/** The number of times that the point ended, also by failure; point 0: completed runs. */
	uint32_t runs;
	/** Keeps the size the same for all compilers. */
	uint32_t reserved;
};

/** A workspace that the shell lists. */
struct opwest_profiled {
	const struct opwest_model *model;
	/** The variable's name. */
	const char *workspace;
	/** @ref count of them, as @ref points has. */
	struct opwest_measure *measures;
	const struct opwest_point *points;
	uint32_t count;
};

#ifdef CONFIG_OPWEST_PROFILE
/** Begin and end a point; called by generated code only. */
#define OPWEST_PROFILE_BEGIN(measures, points, index) opwest_profile_begin(measures, points, index)
#define OPWEST_PROFILE_END(measures, points, index)   opwest_profile_end(measures, points, index)
/** The last initialisers of a workspace: that of its last other member, and no measurements. */
#define OPWEST_PROFILE_AFTER(...)                                                                  \
	__VA_ARGS__,                                                                               \
	{{0U, 0U, 0U, 0U, 0U, 0U, 0U}}
#elif defined(CONFIG_OPWEST_CHECK_INPUTS)
#define OPWEST_PROFILE_BEGIN(measures, points, index) opwest_input_check_begin(points, index)
#define OPWEST_PROFILE_END(measures, points, index)   opwest_input_check_end(points, index)
#define OPWEST_PROFILE_AFTER(...)                     __VA_ARGS__
#endif

#ifdef CONFIG_OPWEST_CHECK_INPUTS
/** Begin a run whose inputs are compared. */
#define OPWEST_CHECK_INPUTS(details, inputs, outputs, workspace)                                   \
	opwest_input_check_run(details, inputs, outputs, workspace)
#elif defined(CONFIG_OPWEST_PROFILE)
#define OPWEST_CHECK_INPUTS(details, inputs, outputs, workspace) ((void)0)
#endif

#if defined(CONFIG_OPWEST_PROFILE) || defined(CONFIG_OPWEST_CHECK_INPUTS)
/** The table of points exists. */
#define OPWEST_HAS_POINTS
#endif

#if defined(CONFIG_OPWEST_PROFILE) && defined(__ZEPHYR__)
/** After the definition of a workspace: lists it for the shell, in a section in flash. */
#define OPWEST_PROFILE_LIST(name, variable)                                                        \
	static const STRUCT_SECTION_ITERABLE(opwest_profiled, opwest_profiled_##variable) = {      \
		&name##_model,                                                                     \
		#variable,                                                                         \
		variable.profile,                                                                  \
		name##_points,                                                                     \
		OPWEST_ARRAY_SIZE(variable.profile),                                               \
	}
#elif defined(OPWEST_HAS_POINTS)
#define OPWEST_PROFILE_LIST(name, variable)                                                        \
	OPWEST_STATIC_ASSERT(sizeof(variable) > 0U, "the workspace is defined")
#endif

/**
 * @brief Add one duration to a measurement.
 *
 * @param measure The measurement.
 * @param cycles  The duration.
 */
void opwest_measure_add(struct opwest_measure *measure, uint64_t cycles);

/**
 * @brief Begin a point.
 *
 * @param measures The measurements of the workspace.
 * @param points   The points of the model.
 * @param index    The point.
 */
void opwest_profile_begin(struct opwest_measure *measures, const struct opwest_point *points,
			  uint32_t index);

/**
 * @brief End a point, and add its cycles.
 *
 * @param measures The measurements of the workspace.
 * @param points   The points of the model.
 * @param index    The point.
 */
void opwest_profile_end(struct opwest_measure *measures, const struct opwest_point *points,
			uint32_t index);

#ifdef CONFIG_OPWEST_CHECK_STEPS
/**
 * @brief Called at the end of every point, after its measurement; may wait.
 *
 * Defined by the service for hosts, and by the program of `opwest run --check-steps`.
 *
 * @param measures The measurements of the workspace.
 * @param index    The point.
 */
void opwest_profile_stop(const struct opwest_measure *measures, uint32_t index);
#endif

#ifdef CONFIG_OPWEST_PROFILE_DEVICES
struct shell;

/**
 * @brief Print the counters of all devices, for the shell's command.
 *
 * @param sh The shell.
 */
void opwest_profile_devices_print(const struct shell *sh);

/** @brief Reset the counters of all devices, for the shell's command. */
void opwest_profile_devices_reset(void);
#endif

/**
 * @brief Reset measurements.
 *
 * @param measures The measurements of a workspace without a run in progress.
 * @param count    Their number.
 */
void opwest_profile_reset(struct opwest_measure *measures, uint32_t count);

/**
 * @brief Return the frequency of the counter.
 *
 * @return Cycles per second; 0 if it is not known
 */
uint64_t opwest_profile_frequency(void);

/**
 * @brief Return the name of a kind of point.
 *
 * @param kind A value of enum opwest_point_kind.
 *
 * @return Its name ("wait"), or NULL if there is no such kind
 */
const char *opwest_point_kind_name(uint32_t kind);

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
	/** The element after it; NULL if the memory is read-only, and the write ended the program.
	 */
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
 * @brief Called for the first change of each step. A test can define it; on Zephyr the default
 * prints the change.
 *
 * @param change The change.
 */
void opwest_input_changed(const struct opwest_input_change *change);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PROFILE_H_ */
