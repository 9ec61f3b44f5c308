/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The use of accelerators by open, run and close of a model. For generated code only.
 *
 * After a failure every successful hook is undone once, in reverse order. The first error is
 * returned and recorded. The state is in the workspace, so workspaces are independent.
 */
#ifndef OPWEST_DEVICES_H_
#define OPWEST_DEVICES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/model.h>
#include <opwest/port.h>
#include <opwest/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of one device in a workspace. */
struct opwest_slot {
	/** The handle that the workspace was opened with. */
	const struct device *dev;
	/** The first launched step without a sync, or OPWEST_NO_STEP. */
	uint16_t launched;
	/** The slot to open at this position: the slots sorted by handle. */
	uint8_t turn;
	/** OPWEST_SLOT_* */
	uint8_t flags;
};

/** The initialiser of a slot before the first open. */
#define OPWEST_SLOT_INIT {NULL, OPWEST_NO_STEP, 0U, 0U}

/** activate() succeeded. */
#define OPWEST_SLOT_ACTIVE 0x01U
/** open() succeeded. */
#define OPWEST_SLOT_OPEN 0x02U
/** sync() timed out. */
#define OPWEST_SLOT_LOST 0x04U

/** The devices of a model: constant. */
struct opwest_device_set {
	/** The model's name, for the log. */
	const char *model;
	const struct opwest_device *devices;
	uint32_t count;
};

/**
 * @brief Check and activate all devices, in the order of the context.
 *
 * @param set    The model's devices.
 * @param slots  A slot per device, with its handle; NULL for a handle that is no struct device.
 * @param status Records the first failure.
 *
 * @retval 0        All are active.
 * @retval -ENODEV  A device is NULL or not ready.
 * @retval -ENOTSUP A device is of another driver class than accelerators.
 * @return Another negative errno of a hook; no device is active
 */
int opwest_devices_activate(const struct opwest_device_set *set, struct opwest_slot *slots,
			    struct opwest_status *status);

/**
 * @brief Deactivate all devices, in reverse order.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records the first failure; NULL if one is recorded already.
 *
 * @retval 0 None is active.
 * @return The first error of a hook; no device is active nevertheless
 */
int opwest_devices_deactivate(const struct opwest_device_set *set, struct opwest_slot *slots,
			      struct opwest_status *status);

/**
 * @brief Open all devices.
 *
 * Devices are opened in the order of the addresses of their handles. All models of an image have
 * the same order, so models that share devices cannot deadlock. Two members of the context with one
 * handle are opened once.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records the first failure.
 *
 * @retval 0 All are owned.
 * @return The first error of a hook; none is owned
 */
int opwest_devices_open(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status);

/**
 * @brief Close all devices, in reverse order.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records the first failure.
 *
 * @retval 0 None is owned.
 * @return The first error of a hook; no device is owned nevertheless
 */
int opwest_devices_close(const struct opwest_device_set *set, struct opwest_slot *slots,
			 struct opwest_status *status);

/**
 * @brief Wait for all launched steps of one device.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records a failure, with the first launched step.
 * @param index  The device.
 *
 * @retval 0          Its steps are done.
 * @retval -ETIMEDOUT Some may continue.
 * @return Another negative errno of a step; all have ended
 */
int opwest_devices_sync(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status, uint32_t index);

/**
 * @brief End a run after its first failure: wait for launched steps, close all devices.
 *
 * A device that timed out, now or before, may hang: in this case all are deactivated too.
 *
 * @param set   The model's devices.
 * @param slots Their slots.
 *
 * @retval true  The workspace stays open.
 * @retval false It must be opened again.
 */
bool opwest_devices_abandon(const struct opwest_device_set *set, struct opwest_slot *slots);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_DEVICES_H_ */
