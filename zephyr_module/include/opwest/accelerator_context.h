/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What every driver of an accelerator keeps: activations, their program, the owner.
 *
 * For drivers only, which have one of it in their data. It does what accelerator.h asks of
 * activate, open, close and deactivate, but for what the device itself has to do.
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
	/** Guards what follows; also held while the device is loaded or unloaded. */
	struct opwest_port_mutex lock;
	/** Free while nobody owns the device. A semaphore: any thread may give it back. */
	struct opwest_port_sem owner;
	/** What the device is active with. */
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
 * @brief Load a program: what the device itself does at its first activation.
 *
 * @param dev     The device.
 * @param program The program, may be NULL.
 *
 * @retval 0       The device is programmed.
 * @retval -EINVAL It can't use this program.
 * @return Another negative errno; the device is as it was before
 */
typedef int (*opwest_accelerator_load_t)(const struct device *dev,
					 const struct opwest_program *program);

/**
 * @brief Stop the device: what it does itself at its last deactivation.
 *
 * @param dev The device.
 *
 * @retval 0 It touches no memory any more.
 * @return A negative errno; it counts as stopped all the same
 */
typedef int (*opwest_accelerator_unload_t)(const struct device *dev);

/**
 * @brief Make a context: not active, without an owner.
 *
 * @param context The context.
 */
void opwest_accelerator_context_init(struct opwest_accelerator_context *context);

/**
 * @brief Count an activation; the first one loads the program.
 *
 * @param context The device's context.
 * @param dev     The device.
 * @param program What to load, may be NULL. It stays until the last deactivation.
 * @param load    Loads it, may be NULL. Others that activate or deactivate wait meanwhile.
 *
 * @retval 0      Active.
 * @retval -EBUSY The device is active with another program.
 * @return What `load` returned; the device is not active
 */
int opwest_accelerator_context_activate(struct opwest_accelerator_context *context,
					const struct device *dev,
					const struct opwest_program *program,
					opwest_accelerator_load_t load);

/**
 * @brief Become the owner.
 *
 * @param context    The device's context.
 * @param timeout_ms How long to wait for another owner, milliseconds; 0 tries, OPWEST_FOREVER.
 *
 * @retval 0          The caller owns the device.
 * @retval -ETIMEDOUT Another owner kept it.
 * @retval -EPERM     The device is not active.
 */
int opwest_accelerator_context_open(struct opwest_accelerator_context *context, int32_t timeout_ms);

/**
 * @brief Give the device to the next owner; whichever thread calls.
 *
 * @param context The device's context, whose device touches none of the owner's memory any more.
 *
 * @retval 0      Others can own it.
 * @retval -EPERM Nobody owned it.
 */
int opwest_accelerator_context_close(struct opwest_accelerator_context *context);

/**
 * @brief Undo one activation; the last one stops the device.
 *
 * @param context The device's context.
 * @param dev     The device.
 * @param unload  Stops it, may be NULL. Others that activate or deactivate wait meanwhile.
 *
 * @retval 0      Done.
 * @retval -EPERM The device is not active.
 * @return What `unload` returned; the device is not active
 */
int opwest_accelerator_context_deactivate(struct opwest_accelerator_context *context,
					  const struct device *dev,
					  opwest_accelerator_unload_t unload);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ACCELERATOR_CONTEXT_H_ */
