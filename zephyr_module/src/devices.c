/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <opwest/accelerator.h>
#include <opwest/devices.h>

/* Records a hook's failure if it is the first one. Returns the first error. */
static int hook_failed(const struct opwest_device_set *set, struct opwest_status *status, int first,
		       enum opwest_hook hook, uint32_t index, uint16_t step, int code)
{
	if (first != 0) {
		return first;
	}
	return opwest_status_hook_failed(status, set->model, set->devices[index].name, hook,
					 (uint8_t)index, step, code);
}

static bool has_hooks(const struct opwest_device *device)
{
	return (device->flags & OPWEST_DEVICE_HOOKS) != 0U;
}

/* Sorts the slots by the address of their handles: the order in which every model opens devices. */
static void take_turns(struct opwest_slot *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = i;

		for (; place > 0U; place--) {
			const uint8_t before = slots[place - 1U].turn;

			if ((uintptr_t)slots[before].dev <= (uintptr_t)slots[i].dev) {
				break;
			}
			slots[place].turn = before;
		}
		slots[place].turn = (uint8_t)i;
	}
}

static int activate(const struct opwest_device *device, const struct device *dev)
{
	int rc = opwest_port_device_power(dev, true);

	if (rc < 0) {
		return rc;
	}
	rc = opwest_accelerator_activate(dev, device->program);
	if (rc != 0) {
		(void)opwest_port_device_power(dev, false);
	}
	return rc;
}

static int deactivate(const struct device *dev)
{
	const int rc = opwest_accelerator_deactivate(dev);
	const int power = opwest_port_device_power(dev, false);

	return rc != 0 ? rc : power < 0 ? power : 0;
}

/* Deactivates the active ones of the first `count` slots, in reverse order. */
static int deactivate_down(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint32_t count, int first)
{
	while (count-- > 0U) {
		if ((slots[count].flags & OPWEST_SLOT_ACTIVE) != 0U) {
			slots[count].flags = 0U;

			const int rc = deactivate(slots[count].dev);

			if (rc != 0) {
				first = hook_failed(set, status, first, OPWEST_HOOK_DEACTIVATE,
						    count, OPWEST_NO_STEP, rc);
			}
		}
	}
	return first;
}

int opwest_devices_activate(const struct opwest_device_set *set, struct opwest_slot *slots,
			    struct opwest_status *status)
{
	for (uint32_t i = 0; i < set->count; i++) {
		slots[i].launched = OPWEST_NO_STEP;
		slots[i].flags = 0U;
		if ((set->devices[i].flags & OPWEST_DEVICE_FOREIGN) != 0U) {
			continue;
		}
		if (!opwest_port_device_is_ready(slots[i].dev)) {
			return hook_failed(set, status, 0, OPWEST_HOOK_READY, i, OPWEST_NO_STEP,
					   -ENODEV);
		}
		if (has_hooks(&set->devices[i]) && !opwest_port_device_has_hooks(slots[i].dev)) {
			return hook_failed(set, status, 0, OPWEST_HOOK_READY, i, OPWEST_NO_STEP,
					   -ENOTSUP);
		}
	}
	take_turns(slots, set->count);
	for (uint32_t i = 0; i < set->count; i++) {
		if (!has_hooks(&set->devices[i])) {
			continue;
		}

		const int rc = activate(&set->devices[i], slots[i].dev);

		if (rc != 0) {
			const int first = hook_failed(set, status, 0, OPWEST_HOOK_ACTIVATE, i,
						      OPWEST_NO_STEP, rc);

			return deactivate_down(set, slots, status, i, first);
		}
		slots[i].flags = OPWEST_SLOT_ACTIVE;
	}
	return 0;
}

int opwest_devices_deactivate(const struct opwest_device_set *set, struct opwest_slot *slots,
			      struct opwest_status *status)
{
	return deactivate_down(set, slots, status, set->count, status == NULL ? -EIO : 0);
}

/* Closes the open devices of the first `turns` turns, in reverse order. */
static int close_down(const struct opwest_device_set *set, struct opwest_slot *slots,
		      struct opwest_status *status, uint32_t turns, int first)
{
	while (turns-- > 0U) {
		struct opwest_slot *const slot = &slots[slots[turns].turn];

		if ((slot->flags & OPWEST_SLOT_OPEN) != 0U) {
			slot->flags &= (uint8_t)~OPWEST_SLOT_OPEN;

			const int rc = opwest_accelerator_close(slot->dev);

			if (rc != 0) {
				first = hook_failed(set, status, first, OPWEST_HOOK_CLOSE,
						    slots[turns].turn, OPWEST_NO_STEP, rc);
			}
		}
	}
	return first;
}

int opwest_devices_open(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status)
{
	const struct device *opened = NULL;

	for (uint32_t turn = 0; turn < set->count; turn++) {
		const uint8_t index = slots[turn].turn;
		struct opwest_slot *const slot = &slots[index];

		if (!has_hooks(&set->devices[index]) || slot->dev == opened) {
			continue;
		}

		const int rc = opwest_accelerator_open(slot->dev, set->devices[index].timeout_ms);

		if (rc != 0) {
			const int first = hook_failed(set, status, 0, OPWEST_HOOK_OPEN, index,
						      OPWEST_NO_STEP, rc);

			return close_down(set, slots, status, turn, first);
		}
		slot->flags |= OPWEST_SLOT_OPEN;
		opened = slot->dev;
	}
	return 0;
}

int opwest_devices_close(const struct opwest_device_set *set, struct opwest_slot *slots,
			 struct opwest_status *status)
{
	return close_down(set, slots, status, set->count, 0);
}

int opwest_devices_sync(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status, uint32_t index)
{
	const uint16_t step = slots[index].launched;
	const int rc = opwest_accelerator_sync(slots[index].dev, set->devices[index].timeout_ms);

	slots[index].launched = OPWEST_NO_STEP;
	if (rc == 0) {
		return 0;
	}
	if (rc == -ETIMEDOUT) {
		slots[index].flags |= OPWEST_SLOT_LOST;
	}
	return hook_failed(set, status, 0, OPWEST_HOOK_SYNC, index, step, rc);
}

bool opwest_devices_abandon(const struct opwest_device_set *set, struct opwest_slot *slots)
{
	uint8_t flags = 0U;

	for (uint32_t i = 0; i < set->count; i++) {
		if (slots[i].launched != OPWEST_NO_STEP &&
		    opwest_accelerator_sync(slots[i].dev, set->devices[i].timeout_ms) ==
			    -ETIMEDOUT) {
			slots[i].flags |= OPWEST_SLOT_LOST;
		}
		slots[i].launched = OPWEST_NO_STEP;
		flags |= slots[i].flags;
	}
	/* The first failure is recorded already: failures of the clean-up are not. */
	(void)close_down(set, slots, NULL, set->count, -EIO);
	if ((flags & OPWEST_SLOT_LOST) == 0U) {
		return true;
	}
	(void)deactivate_down(set, slots, NULL, set->count, -EIO);
	return false;
}
