/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The models of this image, for the shell. Zephyr only.
 */
#ifndef OPWEST_ZEPHYR_H_
#define OPWEST_ZEPHYR_H_

#include <zephyr/sys/iterable_sections.h>

#include <opwest/model.h>

/** A model that the shell lists. */
struct opwest_listed_model {
	const struct opwest_model *model;
};

/** List a model: one entry in an iterable section in flash. */
#define OPWEST_LIST_MODEL(name)                                                                    \
	static const STRUCT_SECTION_ITERABLE(opwest_listed_model, opwest_listed_##name) = {        \
		.model = &name##_model,                                                            \
	}

#endif /* OPWEST_ZEPHYR_H_ */
