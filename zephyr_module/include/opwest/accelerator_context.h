/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The state of every accelerator driver: activations, their program, the owner.
 *
 * For drivers only, as a member of their data. It implements activate, open, close and deactivate
 * as accelerator.h requires, except for the work of the device itself.
 */
#ifndef OPWEST_ACCELERATOR_CONTEXT_H_
#define OPWEST_ACCELERATOR_CONTEXT_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/accelerator.h>
#include <opwest/port_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of a device; its members are used by these functions only. */
struct opwest_accelerator_context {
	/** Guards the other members; also held while the device is loaded or unloaded. */
	struct opwest_port_mutex lock;
	/** 1 while the device has no owner. A semaphore, because any thread may release it. */
	struct opwest_port_sem owner;
	/** The program that the device is active with. */
	const struct opwest_program *program;
	uint32_t activations;
	bool owned;
};

#ifndef __ZEPHYR__
/** A context that needs no opwest_accelerator_context_init(). */
#define OPWEST_ACCELERATOR_CONTEXT_HOST_INITIALIZER                                                \
	{                                                                                          \
		.lock = OPWEST_PORT_MUTEX_HOST_INITIALIZER,                                        \
		.owner = OPWEST_PORT_SEM_HOST_INITIALIZER(1, 1),                                   \
	}
#endif

/**
 * @brief Load a program, at the first activation of a device.
 *
 * @param dev     The device.
 * @param program The program, may be NULL.
 *
 * @retval 0       The device is programmed.
 * @retval -EINVAL The device cannot use this program.
 * @return Another negative errno; the state of the device is unchanged
 */
typedef int (*opwest_accelerator_load_t)(const struct device *dev,
					 const struct opwest_program *program);

/**
 * @brief Stop a device, at its last deactivation.
 *
 * @param dev The device.
 *
 * @retval 0 The device does not access memory any more.
 * @return A negative errno; the device is inactive nevertheless
 */
typedef int (*opwest_accelerator_unload_t)(const struct device *dev);

/**
 * @brief Initialise a context: not active, without an owner.
 *
 * @param context The context.
 */
void opwest_accelerator_context_init(struct opwest_accelerator_context *context);

/**
 * @brief Count an activation; the first one loads the program.
 *
 * @param context The device's context.
 * @param dev     The device.
 * @param program The program, may be NULL. It must exist until the last deactivation.
 * @param load    Loads the program, may be NULL. The lock is held during the call.
 *
 * @retval 0      Active.
 * @retval -EBUSY The device is active with another program.
 * @return The return value of `load`; the device is not active
 */
int opwest_accelerator_context_activate(struct opwest_accelerator_context *context,
					const struct device *dev,
					const struct opwest_program *program,
					opwest_accelerator_load_t load);

/**
 * @brief Become the owner.
 *
 * @param context    The device's context.
 * @param timeout_ms The longest wait for another owner, milliseconds; 0: none; OPWEST_FOREVER.
 *
 * @retval 0          The caller owns the device.
 * @retval -ETIMEDOUT Another owner did not release it.
 * @retval -EPERM     The device is not active.
 */
int opwest_accelerator_context_open(struct opwest_accelerator_context *context, int32_t timeout_ms);

/**
 * @brief Release the device, on any thread.
 *
 * @param context The context of a device that does not access the owner's memory any more.
 *
 * @retval 0      Others can own it.
 * @retval -EPERM The device had no owner.
 */
int opwest_accelerator_context_close(struct opwest_accelerator_context *context);

/**
 * @brief Undo one activation; the last one stops the device.
 *
 * @param context The device's context.
 * @param dev     The device.
 * @param unload  Stops the device, may be NULL. The lock is held during the call.
 *
 * @retval 0      Done.
 * @retval -EPERM The device is not active.
 * @return The return value of `unload`; the device is not active
 */
int opwest_accelerator_context_deactivate(struct opwest_accelerator_context *context,
					  const struct device *dev,
					  opwest_accelerator_unload_t unload);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ACCELERATOR_CONTEXT_H_ */
