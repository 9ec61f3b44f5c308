/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The driver class of accelerators: the hooks that a model calls.
 *
 * A driver implements the hooks that its device needs and sets the others to NULL. A device runs
 * its work in the order of the queue, and only its owner enqueues. If an operator can fail and
 * leave unfinished work (an operator that waits, and times out), the driver must have close(),
 * which aborts the work.
 *
 * | hook       | called by          | for                                                        |
 * |------------|--------------------|------------------------------------------------------------|
 * | activate   | `<model>_open()`   | power and programming; counted                             |
 * | open       | `<model>_run()`    | exclusive ownership, at its start                          |
 * | sync       | `<model>_run()`    | waiting for all work that this owner has enqueued          |
 * | close      | `<model>_run()`    | the end of ownership, at its end                           |
 * | deactivate | `<model>_close()`  | the opposite of activate; counted                          |
 */
#ifndef OPWEST_ACCELERATOR_H_
#define OPWEST_ACCELERATOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/port.h>

#ifdef __ZEPHYR__
#include <zephyr/device.h>
#include <zephyr/toolchain.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __subsystem
/** Marks the structure of a driver class for Zephyr's scripts. */
#define __subsystem
#endif

/** No time-out. */
#define OPWEST_FOREVER (-1)

/** The program of an accelerator: constant, in flash. */
struct opwest_program {
	/** The name that operators may require, for messages. */
	const char *name;
	/** @ref size bytes, aligned to 16. */
	const uint8_t *data;
	uint32_t size;
};

/** @brief Program and power a device; see opwest_accelerator_activate(). */
typedef int (*opwest_accelerator_activate_t)(const struct device *dev,
					     const struct opwest_program *program);
/** @brief Become the owner of a device; see opwest_accelerator_open(). */
typedef int (*opwest_accelerator_open_t)(const struct device *dev, int32_t timeout_ms);
/** @brief Give a device back; see opwest_accelerator_close(). */
typedef int (*opwest_accelerator_close_t)(const struct device *dev);
/** @brief Undo one activation; see opwest_accelerator_deactivate(). */
typedef int (*opwest_accelerator_deactivate_t)(const struct device *dev);
/** @brief Wait for a device; see opwest_accelerator_sync(). */
typedef int (*opwest_accelerator_sync_t)(const struct device *dev, int32_t timeout_ms);

/** The hooks of a driver. Those that it does not need are NULL. */
__subsystem struct opwest_accelerator_driver_api {
	opwest_accelerator_activate_t activate;
	opwest_accelerator_open_t open;
	opwest_accelerator_close_t close;
	opwest_accelerator_deactivate_t deactivate;
	opwest_accelerator_sync_t sync;
};

/**
 * @brief Begin the definition of the hooks of a driver.
 *
 * Use: `static OPWEST_ACCELERATOR_API(name) = { .open = ... };`
 *
 * From Zephyr 4.1 on the structure is in the section of its class, so `<model>_open()` can
 * recognise accelerators.
 *
 * @param name The structure's name.
 */
#ifdef DEVICE_API
#define OPWEST_ACCELERATOR_API(name) DEVICE_API(opwest_accelerator, name)
#else
#define OPWEST_ACCELERATOR_API(name) const struct opwest_accelerator_driver_api name
#endif

/** @brief Return the hooks of a device of this class. */
static inline const struct opwest_accelerator_driver_api *
opwest_accelerator_api(const struct device *dev)
{
	return (const struct opwest_accelerator_driver_api *)dev->api;
}

/**
 * @brief Compare the bytes of two programs.
 *
 * @param a A program, may be NULL.
 * @param b A program, may be NULL.
 *
 * @retval true  Both are NULL, or have the same bytes.
 * @retval false They differ.
 */
bool opwest_program_equal(const struct opwest_program *a, const struct opwest_program *b);

/**
 * @brief Power a device and load its program.
 *
 * Activations are counted: the same program again adds one. A device cannot be active with two
 * different programs.
 *
 * @param dev     The device.
 * @param program The program to load; NULL for a device that needs none.
 *
 * @retval 0        The device is active, or the driver has no such hook.
 * @retval -EBUSY   The device is active with another program.
 * @retval -EINVAL  The driver cannot use this program.
 * @return Another negative errno of the driver; the state of the device is unchanged
 */
static inline int opwest_accelerator_activate(const struct device *dev,
					      const struct opwest_program *program)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->activate == NULL ? 0 : api->activate(dev, program);
}

/**
 * @brief Become the only owner of a device.
 *
 * @param dev        The device.
 * @param timeout_ms The longest wait for another owner, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0          The caller owns the device, or the driver has no such hook.
 * @retval -ETIMEDOUT Another owner did not release it.
 * @retval -EPERM     The device is not active.
 * @return Another negative errno of the driver; the caller does not own the device
 */
static inline int opwest_accelerator_open(const struct device *dev, int32_t timeout_ms)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->open == NULL ? 0 : api->open(dev, timeout_ms);
}

/**
 * @brief Give a device back to others.
 *
 * Called once for every successful open(). Work is unfinished only after sync() timed out; it is
 * aborted. After the return the device does not access the owner's memory.
 *
 * @param dev The device.
 *
 * @retval 0 Others can own the device, or the driver has no such hook.
 * @return A negative errno of the driver; it is not called again
 */
static inline int opwest_accelerator_close(const struct device *dev)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->close == NULL ? 0 : api->close(dev);
}

/**
 * @brief Undo one activation; the last one stops the device.
 *
 * A driver without close() aborts unfinished work here.
 *
 * @param dev The device.
 *
 * @retval 0 Done, or the driver has no such hook.
 * @return A negative errno of the driver; it is not called again
 */
static inline int opwest_accelerator_deactivate(const struct device *dev)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->deactivate == NULL ? 0 : api->deactivate(dev);
}

/**
 * @brief Wait until the device has finished all work of its owner.
 *
 * @param dev        The device, owned by the caller.
 * @param timeout_ms The longest wait, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0          All work is done, or the driver has no such hook.
 * @retval -ETIMEDOUT Some work is unfinished, and the device may still write.
 * @return Another negative errno: all work has ended, and some of it failed
 */
static inline int opwest_accelerator_sync(const struct device *dev, int32_t timeout_ms)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->sync == NULL ? 0 : api->sync(dev, timeout_ms);
}

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ACCELERATOR_H_ */
