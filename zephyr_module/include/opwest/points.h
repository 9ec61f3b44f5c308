/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The begin and end of the points of a model's run: nothing without CONFIG_OPWEST_PROFILE or
 * CONFIG_OPWEST_CHECK_INPUTS.
 */
#ifndef OPWEST_POINTS_H_
#define OPWEST_POINTS_H_

#if defined(CONFIG_OPWEST_PROFILE) || defined(CONFIG_OPWEST_CHECK_INPUTS)
#include <opwest/profile.h>
#endif
#if defined(CONFIG_OPWEST_PROFILE) && defined(__ZEPHYR__)
#include <zephyr/sys/iterable_sections.h>
#endif

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
/** Begin a run whose inputs are compared. */
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
		&name##_model,                                                                     \
		#variable,                                                                         \
		variable.profile,                                                                  \
		name##_points,                                                                     \
		sizeof(variable.profile) / sizeof(variable.profile[0]),                            \
	}
#else
#define OPWEST_PROFILE_LIST(name, variable)
#endif

#endif /* OPWEST_POINTS_H_ */
