/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Models that a host can run: open, write inputs, run, read outputs, close.
 *
 * The portable part of CONFIG_OPWEST_SERVICE, for `opwest run --board`. Generated code describes
 * each model; the shell and the MCUmgr command group use the functions below.
 */
#ifndef OPWEST_SERVICE_H_
#define OPWEST_SERVICE_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __ZEPHYR__
#include <zephyr/sys/iterable_sections.h>
#endif

#include <opwest/model.h>
#ifdef CONFIG_OPWEST_PROFILE
#include <opwest/profile.h>
#endif
#include <opwest/status.h>
#ifdef CONFIG_OPWEST_SERVICE_CALL
#include <opwest/registry.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the commands; a host compares it with its own. */
#define OPWEST_SERVICE_VERSION 1

/** A model with its own workspace, device context and buffers. Defined by generated code. */
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
	 * Returns the memory of a tensor, by the index of opwest_service_tensor(), while the
	 * workspace is open. NULL if there is no such tensor.
	 */
	uint8_t *(*memory)(uint16_t index);
#ifdef CONFIG_OPWEST_PROFILE
	/** The measurements of the workspace. */
	const struct opwest_profiled *profile;
#endif
#ifdef CONFIG_OPWEST_CHECK_STEPS
	/** The tensors in the workspace. */
	const struct opwest_details *details;
	/** Returns the memory of a pool of the workspace, NULL if there is no such pool. */
	uint8_t *(*pool)(uint16_t index);
#endif
#ifdef CONFIG_OPWEST_SERVICE_CALL
	const struct opwest_registry *registry;
	/** The memory for the arguments of one operator, as a tensor of bytes. */
	const struct opwest_tensor *arguments;
	uint8_t *argument_memory;
	/** As many as any operator has. */
	struct opwest_value *values;
	/** Returns a device of the workspace; NULL if the model has none. */
	struct opwest_call_device (*device)(uint32_t index);
#endif
};

#ifdef __ZEPHYR__
/** Begin the definition of a model that a host can run, in an iterable section in flash. */
#define OPWEST_SERVE_MODEL(name)                                                                   \
	static const STRUCT_SECTION_ITERABLE(opwest_served_model, opwest_served_##name)
#endif

#ifdef CONFIG_OPWEST_SERVICE_LOCKED
/**
 * @brief Permit or refuse the commands of hosts.
 *
 * They are refused until the first call. A command in progress is completed.
 *
 * @param permitted Whether hosts can use the service.
 *
 * @isr_ok
 */
void opwest_service_permit(bool permitted);

/**
 * @brief Return whether hosts can use the service.
 *
 * @return The argument of the latest opwest_service_permit(); false without a call
 */
bool opwest_service_is_permitted(void);
#else
static inline bool opwest_service_is_permitted(void)
{
	return true;
}
#endif

/**
 * @brief Return a tensor by index: the inputs, the outputs, then those in the workspace.
 *
 * The last ones only with CONFIG_OPWEST_CHECK_STEPS; a placed input or output is there again. With
 * CONFIG_OPWEST_SERVICE_CALL the argument memory follows.
 *
 * @param served The model.
 * @param index  The index, from 0.
 *
 * @return The tensor, or NULL if there is no such index
 */
const struct opwest_tensor *opwest_service_tensor(const struct opwest_served_model *served,
						  uint16_t index);

/**
 * @brief Find a tensor by name.
 *
 * @param served The model.
 * @param name   The name of the tensor.
 * @param index  Set to its index.
 *
 * @retval 0       Found.
 * @retval -ENOENT There is no such tensor.
 */
int opwest_service_find(const struct opwest_served_model *served, const char *name,
			uint16_t *index);

/**
 * @brief Open a model. If it is open, close it first and reset its measurements.
 *
 * @param served The model.
 *
 * @retval 0 Open.
 * @return A negative errno of the model's own open: see served->status
 */
int opwest_service_open(const struct opwest_served_model *served);

/**
 * @brief Write a part of an input, or of the argument memory.
 *
 * @param served The model, open.
 * @param index  The tensor.
 * @param offset The offset, bytes.
 * @param data   The data.
 * @param size   The number of bytes.
 *
 * @retval 0       Written.
 * @retval -ENOENT There is no such input.
 * @retval -EPERM  The model is not open.
 * @retval -ERANGE The range is outside of the input.
 */
int opwest_service_write(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
			 const uint8_t *data, uint32_t size);

/**
 * @brief Return the bytes of a tensor from an offset.
 *
 * @param served The model, open.
 * @param index  The tensor.
 * @param offset The offset, bytes.
 * @param data   Set to the address.
 * @param size   The largest number of bytes; set to the available number.
 *
 * @retval 0       Found.
 * @retval -ENOENT There is no such tensor.
 * @retval -EPERM  The model is not open.
 * @retval -ERANGE The offset is outside of the tensor.
 */
int opwest_service_read(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
			const uint8_t **data, uint32_t *size);

#ifdef CONFIG_OPWEST_SERVICE_CALL
/**
 * @brief Call one operator with the arguments in the argument memory.
 *
 * The memory begins with a table of 64-bit little-endian numbers, one for each argument of the
 * operator: the offset of a tensor in the memory, the value of an integer, or the bits of a double.
 *
 * @param served The model, open.
 * @param index  The operator, by its index in the model.
 * @param device The index of its device, or OPWEST_NO_DEVICE.
 *
 * @retval 0       The results are in the argument memory.
 * @retval -ENOENT There is no such operator.
 * @retval -ENODEV There is no such device.
 * @retval -EPERM  The model is not open.
 * @retval -ERANGE A tensor is outside of the memory.
 * @return Another negative errno of opwest_call()
 */
int opwest_service_call(const struct opwest_served_model *served, uint32_t index, uint32_t device);
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_SERVICE_H_ */
