/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The use of accelerators by open, run and close of a model. For generated code only.
 *
 * After a failure every successful hook is undone once. The first error is returned and recorded.
 * The state is in the workspace, so workspaces are independent.
 *
 * A run acquires devices where the model first uses them. All acquire them in the order of the
 * addresses of their handles, so that models that share devices cannot deadlock: a device whose
 * address is lower than that of a device which is still owned at that time is acquired earlier,
 * together with it.
 */
#ifndef OPWEST_DEVICES_H_
#define OPWEST_DEVICES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/launch.h>
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
	/** The argument of the operator that runs on the device. */
	struct opwest_launch launch;
	/** The thread that owns the device for this workspace, or 0; other threads may read it. */
	uintptr_t owner;
	/** Launches without a wait, of all members of the context with this handle. */
	uint32_t unfinished;
	/** The number of launches since the device was acquired; it may wrap. */
	uint32_t count;
	/** The jobs before the launch, as the driver counts them; it may wrap. */
	uint32_t jobs;
	/** The first launched step without a complete wait, or OPWEST_NO_STEP. */
	uint16_t launched;
	/** The step that acquires the device. */
	uint16_t acquired;
	/** The largest number of unfinished launches; 0 for no limit. */
	uint16_t depth;
	/** `slot` of the next launch, less than @ref depth. */
	uint16_t next;
	/** The slot to acquire at this position: the slots sorted by handle. */
	uint8_t turn;
	/** The first slot in that order with the same handle: it has the counts of the device. */
	uint8_t leader;
	/** OPWEST_SLOT_* */
	uint8_t flags;
	/** Set by `<model>_cancel()`. */
	uint8_t cancelled;
};

/** The initialiser of a slot before the first open. */
#define OPWEST_SLOT_INIT                                                                           \
	{NULL,                                                                                     \
	 {NULL, NULL, 0, 0U, 0U},                                                                  \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 OPWEST_NO_STEP,                                                                           \
	 OPWEST_NO_STEP,                                                                           \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 0U,                                                                                       \
	 0U}

/** activate() succeeded. */
#define OPWEST_SLOT_ACTIVE    0x01U
/** opwest_own() acquired the device, not a run or a stream. */
#define OPWEST_SLOT_BY_NAME   0x02U
/** The device may hang: sync() timed out, or it has no close() and unfinished work. */
#define OPWEST_SLOT_LOST      0x04U
/** A launch has not enqueued exactly one job: waits are for all work. */
#define OPWEST_SLOT_UNCOUNTED 0x08U
/** The driver needs an empty queue for another program. */
#define OPWEST_SLOT_LOADS     0x10U
/** The current program is that of `launch`. */
#define OPWEST_SLOT_LOADED    0x20U

/** A device with a program that steps use on it. */
struct opwest_device_use {
	/** NULL for steps without a program. */
	const struct opwest_program *program;
	/** The index of the device. */
	uint32_t device;
};

/** The devices of a model: constant. */
struct opwest_device_set {
	/** The model's name, for the log. */
	const char *model;
	const struct opwest_device *devices;
	/** @ref use_count uses: steps refer to them. */
	const struct opwest_device_use *uses;
	/** Set while a workspace of a model with `stateful: true` is open; NULL for others. */
	opwest_port_flag_t *in_use;
	uint32_t count;
	uint32_t use_count;
};

/**
 * @brief Check whether a workspace owns a device: for a call by name, a run, or frames in flight.
 *
 * Any thread can call it. Run, close, submit, reset, save and restore return -EBUSY then.
 *
 * @param set   The model's devices.
 * @param slots Their slots.
 *
 * @retval true  It owns one or more.
 * @retval false It owns none.
 */
static inline bool opwest_devices_owned(const struct opwest_device_set *set,
					const struct opwest_slot *slots)
{
	bool owned = false;

	for (uint32_t i = 0; i < set->count; i++) {
		owned = owned || __atomic_load_n(&slots[i].owner, __ATOMIC_ACQUIRE) != 0U;
	}
	return owned;
}

/**
 * @brief Check and activate all devices, in the order of the context; check their programs.
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
 * @brief Begin a run of a workspace that owns no device: it is not cancelled.
 *
 * @param set   The model's devices.
 * @param slots Their slots.
 */
void opwest_devices_begin(const struct opwest_device_set *set, struct opwest_slot *slots);

/**
 * @brief Acquire the devices that a step acquires, in the order of the addresses of their handles.
 *
 * Two members of the context with one handle are acquired once, by the first of them.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records the first failure.
 * @param step   The step: the first one of some device.
 *
 * @retval 0          All are owned.
 * @retval -EBUSY     Another owner did not release one in its own_timeout_ms.
 * @retval -ECANCELED The run is cancelled.
 * @return Another negative errno of a hook
 */
int opwest_devices_acquire(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint16_t step);

/**
 * @brief Release a device after its last use.
 *
 * It stays owned while another member of the context with its handle needs it.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records a failure.
 * @param index  The device.
 *
 * @retval 0 Released.
 * @return The error of a hook; the device is not owned nevertheless
 */
int opwest_devices_release(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint32_t index);

/**
 * @brief Prepare the launch of a step: room in the queue, program, and the operator's argument.
 *
 * @param set    The model's devices.
 * @param slots  Their slots; that of the device has the argument `launch`.
 * @param status Records a failure.
 * @param use    The device and the program.
 * @param step   The step.
 *
 * @retval 0          The operator can be called.
 * @retval -ECANCELED The run is cancelled.
 * @return Another negative errno of load() or sync()
 */
int opwest_devices_prepare(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint32_t use, uint16_t step);

/**
 * @brief Decide whether an operator that returned -EAGAIN is called again, after a wait for room.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records a failure of the wait.
 * @param index  The device.
 * @param code   The return value of the operator.
 *
 * @retval true  Call it again.
 * @retval false It failed, or nothing is in the queue, or the wait failed.
 */
bool opwest_devices_again(const struct opwest_device_set *set, struct opwest_slot *slots,
			  struct opwest_status *status, uint32_t index, int32_t code);

/**
 * @brief Record that a launched step is unfinished.
 *
 * @param slots The slots.
 * @param index The device.
 */
void opwest_devices_launched(struct opwest_slot *slots, uint32_t index);

/**
 * @brief Wait for launched steps of one device.
 *
 * @param set    The model's devices.
 * @param slots  Their slots.
 * @param status Records a failure, with the first launched step.
 * @param index  The device.
 * @param leave  The number of its last launches that may be unfinished.
 *
 * @retval 0          The other steps are done.
 * @retval -ETIMEDOUT Some may continue.
 * @retval -ECANCELED The run is cancelled.
 * @return Another negative errno of a step
 */
int opwest_devices_sync(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status, uint32_t index, uint32_t leave);

/**
 * @brief Check whether the run is cancelled, before a step of the processor.
 *
 * @param slots  The slots, at least one.
 *
 * @retval true  It is: opwest_status_cancelled() records it.
 * @retval false It is not.
 */
static inline bool opwest_devices_cancelled(const struct opwest_slot *slots)
{
	return __atomic_load_n(&slots[0].cancelled, __ATOMIC_RELAXED) != 0U;
}

/**
 * @brief Cancel the run of a workspace, from any thread or ISR.
 *
 * @param set   The model's devices.
 * @param slots Their slots.
 */
void opwest_devices_cancel(const struct opwest_device_set *set, struct opwest_slot *slots);

/**
 * @brief End a run after its first failure: wait for launched steps, release all devices.
 *
 * A cancelled run does not wait: the devices abort their work. A device that timed out, now or
 * before, may hang: in this case all are deactivated too, and another workspace of a model with
 * `stateful: true` can be opened.
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
