/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Models that a host can run: open, write inputs, run, read outputs, close.
 *
 * The portable part of CONFIG_OPWEST_SERVICE, which `opwest run --board` talks to. Generated code
 * describes each model once; the shell and the MCUmgr command group reach it through the functions
 * below.
 */
#ifndef OPWEST_SERVICE_H_
#define OPWEST_SERVICE_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __ZEPHYR__
#include <zephyr/sys/iterable_sections.h>
#endif

#include <opwest/model.h>
#include <opwest/profile.h>
#include <opwest/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the commands are and mean; a host compares it with its own. */
#define OPWEST_SERVICE_VERSION 1

/**
 * A model with a workspace, a device context and buffers of its own. Generated code fills it in.
 */
struct opwest_served_model {
	const struct opwest_model *model;
	/** The status of the model's workspace. */
	const struct opwest_status *status;
	/** Whether the workspace is open. */
	const bool *opened;
	/** Opens the workspace: 0 or a negative errno. */
	int (*open)(void);
	/** Runs the model on its buffers: 0 or a negative errno. */
	int (*run)(void);
	/** Closes the workspace: 0 or a negative errno. */
	int (*close)(void);
	/**
	 * Returns the memory of a tensor, counted as in opwest_service_tensor(); only while the
	 * workspace is open. NULL if there is no such tensor.
	 */
	uint8_t *(*memory)(uint16_t index);
#ifdef CONFIG_OPWEST_PROFILE
	/** What the workspace measures. */
	const struct opwest_profiled *profile;
#endif
};

#ifdef __ZEPHYR__
/**
 * Start the definition of a model that a host can run: one entry in an iterable section in flash.
 */
#define OPWEST_SERVE_MODEL(name)                                                                   \
	static const STRUCT_SECTION_ITERABLE(opwest_served_model, opwest_served_##name)
#endif

/**
 * @brief Return a tensor: the inputs are counted first, then the outputs.
 *
 * @param served The model.
 * @param index  The tensor, counted from 0.
 *
 * @return The tensor, or NULL if there is none of that number
 */
const struct opwest_tensor *opwest_service_tensor(const struct opwest_served_model *served,
						  uint16_t index);

/**
 * @brief Find a tensor by name.
 *
 * @param served The model.
 * @param name   The name of an input or an output.
 * @param index  Where its number goes.
 *
 * @retval 0       Found.
 * @retval -ENOENT There is none of that name.
 */
int opwest_service_find(const struct opwest_served_model *served, const char *name,
			uint16_t *index);

/**
 * @brief Open a model. One that an earlier host left open is closed first, and what it measured is
 * forgotten.
 *
 * @param served The model.
 *
 * @retval 0 Open.
 * @return A negative errno of the model's own open: see served->status
 */
int opwest_service_open(const struct opwest_served_model *served);

/**
 * @brief Write a part of an input.
 *
 * @param served The model, open.
 * @param index  The input.
 * @param offset Where, bytes.
 * @param data   What.
 * @param size   How much, bytes.
 *
 * @retval 0       Written.
 * @retval -ENOENT There is no such input.
 * @retval -EPERM  The model is not open.
 * @retval -ERANGE The input ends before.
 */
int opwest_service_write(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
			 const uint8_t *data, uint32_t size);

/**
 * @brief Find the bytes of a tensor from an offset on.
 *
 * @param served The model, open.
 * @param index  The tensor.
 * @param offset Where, bytes.
 * @param data   Where the address goes.
 * @param size   At most how much, bytes; what there is goes here.
 *
 * @retval 0       Found.
 * @retval -ENOENT There is no such tensor.
 * @retval -EPERM  The model is not open.
 * @retval -ERANGE The tensor ends before.
 */
int opwest_service_read(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
			const uint8_t **data, uint32_t *size);

/**
 * @brief Name an error: its number differs from one C library to the next.
 *
 * @param error A negative errno.
 *
 * @return Its name ("EBUSY"), or "" if it is none that models return themselves
 */
const char *opwest_service_error_name(int error);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_SERVICE_H_ */
