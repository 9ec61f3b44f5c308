/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The models of a program as a list.
 *
 * On Zephyr CONFIG_OPWEST_MODEL_LIST keeps the metadata of every model of the image, and
 * opwest_models() returns them. On a host the program makes its own list:
 *
 *     static const struct opwest_listed_model models[] = {OPWEST_LISTED_MODEL(digits)};
 *     static const struct opwest_model_list list = {models, 1};
 */
#ifndef OPWEST_MODEL_LIST_H_
#define OPWEST_MODEL_LIST_H_

#include <stddef.h>
#include <string.h>

#ifdef __ZEPHYR__
#include <zephyr/sys/iterable_sections.h>
#endif

#include <opwest/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An element of a list. */
struct opwest_listed_model {
	const char *name;
	const struct opwest_model *model;
};

/** A list of models. */
struct opwest_model_list {
	/** @ref count elements. */
	const struct opwest_listed_model *models;
	size_t count;
};

/** The initialiser of an element, for the model @p name. */
#define OPWEST_LISTED_MODEL(name) {#name, &name##_model}

/**
 * @brief Find a model of a list.
 *
 * @param list The list.
 * @param name The model's name.
 *
 * @return The model, or NULL if there is none of that name
 */
static inline const struct opwest_model *
opwest_model_list_find(const struct opwest_model_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (strcmp(list->models[i].name, name) == 0) {
			return list->models[i].model;
		}
	}
	return NULL;
}

#ifdef __ZEPHYR__
/** Add a model to the list of this image: one entry in an iterable section in flash. */
#define OPWEST_LIST_MODEL(name)                                                                    \
	static const STRUCT_SECTION_ITERABLE(opwest_listed_model, opwest_listed_##name) =          \
		OPWEST_LISTED_MODEL(name)

/**
 * @brief Return all models of this image. Needs CONFIG_OPWEST_MODEL_LIST.
 *
 * @return The list, in the order of the names
 */
static inline struct opwest_model_list opwest_models(void)
{
	struct opwest_model_list list = {NULL, 0};

	STRUCT_SECTION_COUNT(opwest_listed_model, &list.count);
	if (list.count > 0U) {
		struct opwest_listed_model *first;

		STRUCT_SECTION_GET(opwest_listed_model, 0, &first);
		list.models = first;
	}
	return list;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_MODEL_LIST_H_ */
