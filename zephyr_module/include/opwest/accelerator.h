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
 * On Zephyr with CONFIG_USERSPACE the functions are system calls. A user thread needs permission
 * for the device (k_object_access_grant()); its programs must be constants of the image.
 *
 * | hook       | called by                 | for                                                |
 * |------------|---------------------------|----------------------------------------------------|
 * | info       | `<model>_open()`          | constant properties: queue depth, cost of programs |
 * | activate   | `<model>_open()`          | power, clocks, memory; counted                     |
 * | check      | `<model>_open()`          | every program that the model uses                  |
 * | open       | `<model>_run()`           | exclusive ownership, before the first launch       |
 * | load       | `<model>_run()`           | another program than that of the last launch       |
 * | enqueued   | `<model>_run()`           | the number of jobs of the owner                    |
 * | sync       | `<model>_run()`           | waiting for work that this owner has enqueued      |
 * | wake       | `<model>_cancel()`        | ending a wait early                                |
 * | notify     | the application           | a callback when work ends                          |
 * | close      | `<model>_run()`           | the end of ownership, after the last wait          |
 * | deactivate | `<model>_close()`         | the opposite of activate; counted                  |
 */
#ifndef OPWEST_ACCELERATOR_H_
#define OPWEST_ACCELERATOR_H_

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/launch.h>
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

/** The cost of another program. */
enum opwest_switching {
	/** load() is allowed at any time: every launch carries its program. */
	OPWEST_SWITCH_FREE = 0,
	/** load() is allowed while the queue is empty. */
	OPWEST_SWITCH_LOAD = 1,
	/** load() is allowed while the queue is empty and no other model has it activated. */
	OPWEST_SWITCH_EXCLUSIVE = 2,
};

/** The constant properties of a device. */
struct opwest_accelerator_info {
	/** The largest number of unfinished jobs; 0 if the driver sets no limit. */
	uint16_t queue_depth;
	/** enum opwest_switching */
	uint8_t switching;
};

/** @brief Called when a job of a device has ended, by a thread of the driver or an ISR. */
typedef void (*opwest_accelerator_callback_t)(const struct device *dev, void *user);

/** @brief Describe a device; see opwest_accelerator_info(). */
typedef int (*opwest_accelerator_info_t)(const struct device *dev,
					 struct opwest_accelerator_info *info);
/** @brief Power a device; see opwest_accelerator_activate(). */
typedef int (*opwest_accelerator_activate_t)(const struct device *dev);
/** @brief Check a program; see opwest_accelerator_check(). */
typedef int (*opwest_accelerator_check_t)(const struct device *dev,
					  const struct opwest_program *program);
/** @brief Become the owner of a device; see opwest_accelerator_open(). */
typedef int (*opwest_accelerator_open_t)(const struct device *dev, int32_t timeout_ms);
/** @brief Load a program; see opwest_accelerator_load(). */
typedef int (*opwest_accelerator_load_t)(const struct device *dev,
					 const struct opwest_program *program);
/** @brief Count the owner's jobs; see opwest_accelerator_enqueued(). */
typedef uint32_t (*opwest_accelerator_enqueued_t)(const struct device *dev);
/** @brief Wait for a device; see opwest_accelerator_sync(). */
typedef int (*opwest_accelerator_sync_t)(const struct device *dev, uint32_t leave,
					 int32_t timeout_ms);
/** @brief End a wait; see opwest_accelerator_wake(). */
typedef void (*opwest_accelerator_wake_t)(const struct device *dev);
/** @brief Set a callback; see opwest_accelerator_notify(). */
typedef int (*opwest_accelerator_notify_t)(const struct device *dev,
					   opwest_accelerator_callback_t callback, void *user);
/** @brief Give a device back; see opwest_accelerator_close(). */
typedef int (*opwest_accelerator_close_t)(const struct device *dev);
/** @brief Undo one activation; see opwest_accelerator_deactivate(). */
typedef int (*opwest_accelerator_deactivate_t)(const struct device *dev);

/** The hooks of a driver. Those that it does not need are NULL. */
__subsystem struct opwest_accelerator_driver_api {
	opwest_accelerator_info_t info;
	opwest_accelerator_activate_t activate;
	opwest_accelerator_check_t check;
	opwest_accelerator_open_t open;
	opwest_accelerator_load_t load;
	opwest_accelerator_enqueued_t enqueued;
	opwest_accelerator_sync_t sync;
	opwest_accelerator_wake_t wake;
	opwest_accelerator_notify_t notify;
	opwest_accelerator_close_t close;
	opwest_accelerator_deactivate_t deactivate;
	/** For operators of bundles: see opwest/accelerator_functions.h. */
	const struct opwest_accelerator_functions *functions;
};

/**
 * @brief Begin the definition of the hooks of a driver.
 *
 * Use: `static OPWEST_ACCELERATOR_API(name) = { .open = ... };`
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

#ifdef CONFIG_USERSPACE
/* Parsed by Zephyr's scripts. accelerator_syscalls.c verifies the arguments of user threads. */
__syscall int opwest_accelerator_info(const struct device *dev,
				      struct opwest_accelerator_info *info);
__syscall int opwest_accelerator_activate(const struct device *dev);
__syscall int opwest_accelerator_check(const struct device *dev,
				       const struct opwest_program *program);
__syscall int opwest_accelerator_open(const struct device *dev, int32_t timeout_ms);
__syscall int opwest_accelerator_load(const struct device *dev,
				      const struct opwest_program *program);
__syscall uint32_t opwest_accelerator_enqueued(const struct device *dev);
__syscall int opwest_accelerator_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms);
__syscall void opwest_accelerator_wake(const struct device *dev);
__syscall int opwest_accelerator_notify(const struct device *dev,
					opwest_accelerator_callback_t callback, void *user);
__syscall int opwest_accelerator_close(const struct device *dev);
__syscall int opwest_accelerator_deactivate(const struct device *dev);

/** The name of a function below: with user threads it is the part in supervisor mode. */
#define OPWEST_ACCELERATOR_IMPL(name) z_impl_opwest_accelerator_##name
#else
#define OPWEST_ACCELERATOR_IMPL(name) opwest_accelerator_##name
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
 * @brief Describe a device.
 *
 * @param dev  The device.
 * @param info Filled in. Without this hook: no limit of the queue, OPWEST_SWITCH_LOAD.
 *
 * @retval 0 Done.
 * @return A negative errno of the driver
 */
static inline int OPWEST_ACCELERATOR_IMPL(info)(const struct device *dev,
						struct opwest_accelerator_info *info)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	info->queue_depth = 0U;
	info->switching = OPWEST_SWITCH_LOAD;
	return api == NULL || api->info == NULL ? 0 : api->info(dev, info);
}

/**
 * @brief Power a device. Activations are counted.
 *
 * @param dev The device.
 *
 * @retval 0 The device is active, or the driver has no such hook.
 * @return A negative errno of the driver; the state of the device is unchanged
 */
static inline int OPWEST_ACCELERATOR_IMPL(activate)(const struct device *dev)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->activate == NULL ? 0 : api->activate(dev);
}

/**
 * @brief Check that a device can load a program. No ownership is required.
 *
 * @param dev     The device, active.
 * @param program The program; NULL for a step without a program.
 *
 * @retval 0       It can, or the driver has no such hook.
 * @retval -EINVAL The program is damaged, or for another device.
 * @retval -EFAULT A user thread passed a program that is no constant of the image.
 */
static inline int OPWEST_ACCELERATOR_IMPL(check)(const struct device *dev,
						 const struct opwest_program *program)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->check == NULL ? 0 : api->check(dev, program);
}

/**
 * @brief Become the only owner of a device.
 *
 * The calling thread is the owner: it launches, waits and closes. A waiting thread of a higher
 * priority raises the priority of the owner where the system has priority inheritance.
 *
 * @param dev        The device.
 * @param timeout_ms The longest wait for another owner, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0        The caller owns the device, or the driver has no such hook.
 * @retval -EBUSY   Another owner did not release it.
 * @retval -EPERM   The device is not active.
 * @retval -EDEADLK The calling thread owns it already.
 * @return Another negative errno of the driver; the caller does not own the device
 */
static inline int OPWEST_ACCELERATOR_IMPL(open)(const struct device *dev, int32_t timeout_ms)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->open == NULL ? 0 : api->open(dev, timeout_ms);
}

/**
 * @brief Make a program the current one of an owned device.
 *
 * If it is already loaded, nothing happens. A model calls it before the first launch after open(),
 * and before each launch of another program; except for OPWEST_SWITCH_FREE the queue is empty.
 *
 * @param dev     The device, owned by the caller.
 * @param program The program, checked; NULL for a step without a program.
 *
 * @retval 0       Loaded, or the driver has no such hook.
 * @retval -EBUSY  OPWEST_SWITCH_EXCLUSIVE: another model has activated the device.
 * @retval -EFAULT A user thread passed a program that is no constant of the image.
 * @return Another negative errno of the driver; no program is loaded
 */
static inline int OPWEST_ACCELERATOR_IMPL(load)(const struct device *dev,
						const struct opwest_program *program)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->load == NULL ? 0 : api->load(dev, program);
}

/**
 * @brief Return the number of jobs that the owner has enqueued since it opened the device.
 *
 * It may wrap. A model compares the values before and after a launch: a launch that enqueues
 * exactly one job can be waited for while later ones continue.
 *
 * @param dev The device, owned by the caller.
 *
 * @return The number; 0 without this hook: every wait is then for all work
 */
static inline uint32_t OPWEST_ACCELERATOR_IMPL(enqueued)(const struct device *dev)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->enqueued == NULL ? 0U : api->enqueued(dev);
}

/**
 * @brief Wait until a device has finished work of its owner.
 *
 * @param dev        The device, owned by the caller.
 * @param leave      The number of jobs, the last ones, that may be unfinished; 0: all work is done.
 * @param timeout_ms The longest wait, milliseconds; 0: none; OPWEST_FOREVER.
 *
 * @retval 0          At most `leave` jobs are unfinished, or the driver has no such hook.
 * @retval -EINTR     opwest_accelerator_wake() was called; more jobs than `leave` are unfinished.
 * @retval -EAGAIN    The same, and `timeout_ms` is 0.
 * @retval -ETIMEDOUT The same, after the time-out: the device may still write.
 * @return Another negative errno: at most `leave` jobs are unfinished, and an ended one failed
 */
static inline int OPWEST_ACCELERATOR_IMPL(sync)(const struct device *dev, uint32_t leave,
						int32_t timeout_ms)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->sync == NULL ? 0 : api->sync(dev, leave, timeout_ms);
}

/**
 * @brief Let the sync() in progress, or else the next one, return -EINTR.
 *
 * A thread or an ISR can call it at any time, for any owner: an owner that did not expect it waits
 * again.
 *
 * @param dev The device.
 */
static inline void OPWEST_ACCELERATOR_IMPL(wake)(const struct device *dev)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	if (api != NULL && api->wake != NULL) {
		api->wake(dev);
	}
}

/**
 * @brief Set the function that is called when a job of the owner has ended.
 *
 * @param dev      The device, owned by the caller. The end of ownership removes the callback.
 * @param callback The function, or NULL. It must not block, and not call the device, except
 *                 opwest_accelerator_wake().
 * @param user     Its second argument.
 *
 * @retval 0        Done.
 * @retval -ENOTSUP The driver has no such hook.
 * @retval -EPERM   The device has no owner; or a user thread called: drivers call the function in
 *                  supervisor mode, from an ISR.
 */
static inline int OPWEST_ACCELERATOR_IMPL(notify)(const struct device *dev,
						  opwest_accelerator_callback_t callback,
						  void *user)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->notify == NULL ? -ENOTSUP : api->notify(dev, callback, user);
}

/**
 * @brief Give a device back to others.
 *
 * Called once for every successful open(), by the same thread. Unfinished work is aborted: it
 * remains after a time-out or a cancelled run. After the return the device does not access the
 * owner's memory.
 *
 * @param dev The device.
 *
 * @retval 0 Others can own the device, or the driver has no such hook.
 * @return A negative errno of the driver; it is not called again
 */
static inline int OPWEST_ACCELERATOR_IMPL(close)(const struct device *dev)
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
static inline int OPWEST_ACCELERATOR_IMPL(deactivate)(const struct device *dev)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);

	return api == NULL || api->deactivate == NULL ? 0 : api->deactivate(dev);
}

#ifdef __cplusplus
}
#endif

#ifdef CONFIG_USERSPACE
#if __has_include(<zephyr/syscalls/accelerator.h>)
#include <zephyr/syscalls/accelerator.h>
#else /* before Zephyr 3.7 */
#include <syscalls/accelerator.h>
#endif
#endif

#endif /* OPWEST_ACCELERATOR_H_ */
