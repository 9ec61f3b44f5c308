/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Shared by devices.c (open, close, failures), device_ownership.c (acquire, release) and
 * device_launches.c (launches and waits).
 */
#ifndef OPWEST_DEVICES_INTERNAL_H_
#define OPWEST_DEVICES_INTERNAL_H_

#include <opwest/accelerator.h>
#include <opwest/devices.h>

/** A wait that nothing can end early takes at most so many milliseconds, and is repeated. */
#define OPWEST_DEVICES_SLICE_MS 10

/** @brief Return whether the driver of a device is of the class of accelerators. */
static inline bool opwest_devices_has_hooks(const struct opwest_device *device)
{
	return (device->flags & OPWEST_DEVICE_HOOKS) != 0U;
}

/** @brief Return the slot with the counts of a device. */
static inline struct opwest_slot *opwest_devices_leader(struct opwest_slot *slots, uint32_t index)
{
	return &slots[slots[index].leader];
}

/**
 * @brief Record the failure of a hook if it is the first one.
 *
 * @param set    The model's devices.
 * @param status Records it; not used if `first` is not 0.
 * @param first  The first error so far, or 0.
 * @param hook   The hook.
 * @param index  The device.
 * @param step   The step, or OPWEST_NO_STEP.
 * @param code   The return value of the hook.
 *
 * @return The first error
 */
int opwest_devices_failed(const struct opwest_device_set *set, struct opwest_status *status,
			  int first, enum opwest_hook hook, uint32_t index, uint16_t step,
			  int code);

/**
 * @brief Power a device whose power follows the ownership.
 *
 * @param device The device.
 * @param dev    Its handle.
 * @param on     Up, or down.
 *
 * @retval 0 Done, or its power follows the activation.
 * @return A negative errno
 */
int opwest_devices_power(const struct opwest_device *device, const struct device *dev, bool on);

/** @brief Sort the slots by handle, and find when each device is acquired. */
void opwest_devices_order(const struct opwest_device_set *set, struct opwest_slot *slots);

/**
 * @brief Release all owned devices, in reverse order.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records the first failure.
 * @param first  The first error so far, or 0.
 *
 * @return The first error
 */
int opwest_devices_release_all(const struct opwest_device_set *set, struct opwest_slot *slots,
			       struct opwest_status *status, int first);

/**
 * @brief Wait for a device, and wait again if another run was cancelled.
 *
 * @param info  The device.
 * @param slot  Its leader.
 * @param leave The number of jobs that may be unfinished.
 *
 * @retval -ECANCELED This run is cancelled.
 * @return As opwest_accelerator_sync()
 */
int opwest_devices_wait(const struct opwest_device *info, struct opwest_slot *slot, uint32_t leave);

/**
 * @brief Acquire the handle of a slot, and power it.
 *
 * @param device The device.
 * @param slot   Its leader.
 *
 * @retval 0          Owned.
 * @retval -ECANCELED The run is cancelled.
 * @return As opwest_accelerator_open()
 */
int opwest_devices_own(const struct opwest_device *device, struct opwest_slot *slot);

/**
 * @brief Acquire all handles that steps use, in the order of their addresses.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records the first failure.
 *
 * @return As opwest_devices_acquire(); after a failure some handles are owned
 */
int opwest_devices_acquire_all(const struct opwest_device_set *set, struct opwest_slot *slots,
			       struct opwest_status *status);

/**
 * @brief Return the number of launches of a device that may be unfinished before the next one.
 *
 * @param slots The slots.
 * @param use   The device and the program of the next launch.
 *
 * @return 0 if another program must be loaded first, and UINT32_MAX without a limit
 */
uint32_t opwest_devices_room(struct opwest_slot *slots, const struct opwest_device_use *use);

/**
 * @brief Release the handle of a slot.
 *
 * @param device The device.
 * @param slot   Its leader, which owns it.
 *
 * @retval 0 Others can own it.
 * @return The first error; it is not owned nevertheless
 */
int opwest_devices_disown(const struct opwest_device *device, struct opwest_slot *slot);

/**
 * @brief Prepare a launch; see opwest_devices_prepare().
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records a failure.
 * @param use    The device and the program.
 * @param step   The step, or OPWEST_NO_STEP.
 *
 * @return As opwest_devices_prepare()
 */
int opwest_devices_prepare_use(const struct opwest_device_set *set, struct opwest_slot *slots,
			       struct opwest_status *status, const struct opwest_device_use *use,
			       uint16_t step);

#endif /* OPWEST_DEVICES_INTERNAL_H_ */
