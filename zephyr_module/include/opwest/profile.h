/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Measurement of the parts of a model's run: CONFIG_OPWEST_PROFILE.
 *
 * The counts are in the workspace. Without the option the image contains none of this, and the
 * code of run is unchanged.
 */
#ifndef OPWEST_PROFILE_H_
#define OPWEST_PROFILE_H_

#include <stdint.h>

#ifdef CONFIG_OPWEST_CHECK_INPUTS
#include <opwest/input_check.h>
#endif
#include <opwest/model.h>
#if defined(CONFIG_OPWEST_PROFILE) && defined(__ZEPHYR__)
#include <zephyr/sys/iterable_sections.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The kinds of measured points. */
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

/** A measured part of run: constant. */
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
/** The last initialiser of a workspace: no measurements. */
#define OPWEST_PROFILE_INIT                           {{0U, 0U, 0U, 0U, 0U, 0U, 0U}},
#elif defined(OPWEST_BUNDLE_STEPS)
/* An image whose run reports the end of each point: see opwest/bundle_image.h. */
#define OPWEST_PROFILE_BEGIN(measures, points, index) ((void)0)
#define OPWEST_PROFILE_END(measures, points, index)                                                \
	opwest_bundle_ended(OPWEST_BUNDLE_TRAILER(workspace), index)
#define OPWEST_PROFILE_INIT
#elif defined(CONFIG_OPWEST_CHECK_INPUTS)
#define OPWEST_PROFILE_BEGIN(measures, points, index) opwest_input_check_begin(points, index)
#define OPWEST_PROFILE_END(measures, points, index)   opwest_input_check_end(points, index)
#define OPWEST_PROFILE_INIT
#else
#define OPWEST_PROFILE_BEGIN(measures, points, index) ((void)0)
#define OPWEST_PROFILE_END(measures, points, index)   ((void)0)
#define OPWEST_PROFILE_INIT
#endif

#ifdef CONFIG_OPWEST_CHECK_INPUTS
/** Begin a run whose inputs are compared: see opwest/input_check.h. */
#define OPWEST_CHECK_INPUTS(details, inputs, outputs, workspace)                                   \
	opwest_input_check_run(details, inputs, outputs, workspace)
#else
#define OPWEST_CHECK_INPUTS(details, inputs, outputs, workspace) ((void)0)
#endif

#if defined(CONFIG_OPWEST_PROFILE) || defined(CONFIG_OPWEST_CHECK_INPUTS)
/** The table of points exists. */
#define OPWEST_HAS_POINTS
#endif

#if defined(CONFIG_OPWEST_PROFILE) && defined(__ZEPHYR__)
/** After the definition of a workspace: lists it for the shell, in a section in flash. */
#define OPWEST_PROFILE_LIST(name, variable)                                                        \
	;                                                                                          \
	static const STRUCT_SECTION_ITERABLE(opwest_profiled, opwest_profiled_##variable) = {      \
		&name##_model, #variable, variable.profile, name##_points,                         \
		sizeof(variable.profile) / sizeof(variable.profile[0]),                            \
	}
#else
#define OPWEST_PROFILE_LIST(name, variable)
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

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PROFILE_H_ */
