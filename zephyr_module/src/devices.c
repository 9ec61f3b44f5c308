/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close of the devices of a model, and the end of a failed run. */
#include <errno.h>

#include "devices_internal.h"

int opwest_devices_failed(const struct opwest_device_set *set, struct opwest_status *status,
			  int first, enum opwest_hook hook, uint32_t index, uint16_t step, int code)
{
	if (first != 0) {
		return first;
	}
	return opwest_status_hook_failed(status, set->model, set->devices[index].name, hook,
					 (uint8_t)index, step, code);
}

static bool powers_run(const struct opwest_device *device)
{
	return (device->flags & OPWEST_DEVICE_POWER_RUN) != 0U;
}

int opwest_devices_power(const struct opwest_device *device, const struct device *dev, bool on)
{
	return powers_run(device) ? opwest_port_device_power(dev, on) : 0;
}

/* Powers the device up for its activation. */
static int activate(const struct device *dev)
{
	int rc = opwest_port_device_power(dev, true);

	if (rc < 0) {
		return rc;
	}
	rc = opwest_accelerator_activate(dev);
	if (rc != 0) {
		(void)opwest_port_device_power(dev, false);
	}
	return rc;
}

static int deactivate(const struct opwest_device *device, const struct device *dev)
{
	const int up = opwest_devices_power(device, dev, true);
	const int rc = opwest_accelerator_deactivate(dev);
	const int down = up < 0 ? up : opwest_port_device_power(dev, false);

	return rc != 0 ? rc : down < 0 ? down : 0;
}

/* Deactivates the active ones of the first `count` slots, in reverse order. */
static int deactivate_down(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint32_t count, int first)
{
	while (count-- > 0U) {
		if ((slots[count].flags & OPWEST_SLOT_ACTIVE) != 0U) {
			slots[count].flags = 0U;

			const int rc = deactivate(&set->devices[count], slots[count].dev);

			if (rc != 0) {
				first = opwest_devices_failed(set, status, first,
							      OPWEST_HOOK_DEACTIVATE, count,
							      OPWEST_NO_STEP, rc);
			}
		}
	}
	return first;
}

static int check_ready(const struct opwest_device_set *set, struct opwest_slot *slots,
		       struct opwest_status *status)
{
	for (uint32_t i = 0; i < set->count; i++) {
		int rc = 0;

		slots[i].launched = OPWEST_NO_STEP;
		slots[i].owner = 0U;
		slots[i].flags = 0U;
		if ((set->devices[i].flags & OPWEST_DEVICE_FOREIGN) != 0U) {
			continue;
		}
		if (!opwest_port_device_is_ready(slots[i].dev)) {
			rc = -ENODEV;
		} else if (opwest_devices_has_hooks(&set->devices[i]) &&
			   !opwest_port_device_has_hooks(slots[i].dev)) {
			rc = -ENOTSUP;
		}
		if (rc != 0) {
			return opwest_devices_failed(set, status, 0, OPWEST_HOOK_READY, i,
						     OPWEST_NO_STEP, rc);
		}
	}
	return 0;
}

/* The smaller one of two limits; 0 is none. */
static uint16_t smaller(uint16_t a, uint16_t b)
{
	return a == 0U || (b != 0U && b < a) ? b : a;
}

static int describe(const struct opwest_device *device, struct opwest_slot *slot, bool *exclusive)
{
	struct opwest_accelerator_info info;
	const int rc = opwest_accelerator_info(slot->dev, &info);

	if (rc == 0) {
		slot->depth = smaller(device->queue_depth, info.queue_depth);
		slot->flags |= info.switching == OPWEST_SWITCH_FREE ? 0U : OPWEST_SLOT_LOADS;
		*exclusive = info.switching == OPWEST_SWITCH_EXCLUSIVE;
	}
	return rc;
}

/* Loads a program that stays loaded while the model is open. */
static int load_once(const struct opwest_device *device, const struct device *dev,
		     const struct opwest_program *program)
{
	int rc = opwest_accelerator_open(dev, device->own_timeout_ms);
	int closed;

	if (rc != 0) {
		return rc;
	}
	rc = opwest_accelerator_load(dev, program);
	closed = opwest_accelerator_close(dev);
	return rc != 0 ? rc : closed;
}

/* Checks the programs of an active device. */
static int check_programs(const struct opwest_device_set *set, struct opwest_slot *slots,
			  uint32_t index, enum opwest_hook *hook)
{
	bool is_exclusive = false;
	int rc = describe(&set->devices[index], &slots[index], &is_exclusive);

	*hook = OPWEST_HOOK_CHECK;
	for (uint32_t i = 0; i < set->use_count && rc == 0; i++) {
		if (set->uses[i].device == index) {
			rc = opwest_accelerator_check(slots[index].dev, set->uses[i].program);
		}
	}
	for (uint32_t i = 0; i < set->use_count && rc == 0 && is_exclusive; i++) {
		if (set->uses[i].device == index && set->uses[i].program != NULL) {
			*hook = OPWEST_HOOK_LOAD;
			is_exclusive = false;
			rc = load_once(&set->devices[index], slots[index].dev,
				       set->uses[i].program);
		}
	}
	return rc;
}

int opwest_devices_activate(const struct opwest_device_set *set, struct opwest_slot *slots,
			    struct opwest_status *status)
{
	int rc = check_ready(set, slots, status);

	if (rc != 0) {
		return rc;
	}
	opwest_devices_order(set, slots);
	for (uint32_t i = 0; i < set->count; i++) {
		enum opwest_hook hook = OPWEST_HOOK_ACTIVATE;
		int power;

		if (!opwest_devices_has_hooks(&set->devices[i])) {
			continue;
		}
		rc = activate(slots[i].dev);
		if (rc == 0) {
			slots[i].flags = OPWEST_SLOT_ACTIVE;
			rc = check_programs(set, slots, i, &hook);
			power = opwest_devices_power(&set->devices[i], slots[i].dev, false);
			if (rc == 0 && power < 0) {
				rc = power;
				hook = OPWEST_HOOK_ACTIVATE;
			}
		}
		if (rc != 0) {
			rc = opwest_devices_failed(set, status, 0, hook, i, OPWEST_NO_STEP, rc);
			return deactivate_down(set, slots, status, i + 1U, rc);
		}
	}
	return 0;
}

int opwest_devices_deactivate(const struct opwest_device_set *set, struct opwest_slot *slots,
			      struct opwest_status *status)
{
	return deactivate_down(set, slots, status, set->count, status == NULL ? -EIO : 0);
}

void opwest_devices_begin(const struct opwest_device_set *set, struct opwest_slot *slots)
{
	for (uint32_t i = 0; i < set->count; i++) {
		__atomic_store_n(&slots[i].cancelled, 0U, __ATOMIC_RELAXED);
	}
}

/* Waits for the work of a device, or leaves it to close(), which aborts it. */
static void drain(const struct opwest_device *device, struct opwest_slot *slot)
{
	const int rc = opwest_devices_wait(device, slot, 0U);

	if (rc == -ETIMEDOUT ||
	    (rc == -ECANCELED && opwest_accelerator_api(slot->dev)->close == NULL)) {
		slot->flags |= OPWEST_SLOT_LOST;
	}
}

bool opwest_devices_abandon(const struct opwest_device_set *set, struct opwest_slot *slots)
{
	uint8_t flags = 0U;

	for (uint32_t i = 0; i < set->count; i++) {
		if (slots[i].launched != OPWEST_NO_STEP) {
			drain(&set->devices[i], &slots[i]);
		}
		slots[i].launched = OPWEST_NO_STEP;
		flags |= slots[i].flags;
	}
	/* The first failure is recorded already: failures of the clean-up are not. */
	(void)opwest_devices_release_all(set, slots, NULL, -EIO);
	if ((flags & OPWEST_SLOT_LOST) == 0U) {
		return true;
	}
	(void)deactivate_down(set, slots, NULL, set->count, -EIO);
	if (set->in_use != NULL) {
		opwest_port_give(set->in_use);
	}
	return false;
}
