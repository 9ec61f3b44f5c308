/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which runs acquire devices, and the ownership itself. */
#include <errno.h>

#include "devices_internal.h"

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

static bool is_used(const struct opwest_device *device)
{
	return opwest_devices_has_hooks(device) && device->first_step != OPWEST_NO_STEP;
}

/* Returns the step before which a handle is released: the last one of all members that have it. */
static uint16_t released(const struct opwest_device_set *set, const struct opwest_slot *slots,
			 uint8_t leader)
{
	uint16_t last = 0U;

	for (uint32_t i = 0; i < set->count; i++) {
		if (slots[i].leader == leader && is_used(&set->devices[i]) &&
		    set->devices[i].last_step > last) {
			last = set->devices[i].last_step;
		}
	}
	return last;
}

/*
 * Moves the acquisition of a handle to the step that acquires a handle of a higher address, if that
 * one is still owned when this one is needed. Returns whether it moved.
 */
static bool move(const struct opwest_device_set *set, struct opwest_slot *slots, uint32_t turn)
{
	struct opwest_slot *const slot = &slots[slots[turn].turn];

	for (uint32_t higher = turn + 1U; higher < set->count; higher++) {
		const uint8_t other = slots[higher].turn;

		if (slots[other].leader == other && slots[other].acquired < slot->acquired &&
		    slot->acquired < released(set, slots, other)) {
			slot->acquired = slots[other].acquired;
			return true;
		}
	}
	return false;
}

void opwest_devices_order(const struct opwest_device_set *set, struct opwest_slot *slots)
{
	uint8_t leader = 0U;

	take_turns(slots, set->count);
	for (uint32_t turn = 0; turn < set->count; turn++) {
		const uint8_t index = slots[turn].turn;
		struct opwest_slot *const slot = &slots[index];

		if (turn == 0U || slot->dev == NULL || slot->dev != slots[leader].dev) {
			leader = index;
		}
		slot->leader = leader;
		slot->acquired = OPWEST_NO_STEP;
		if (is_used(&set->devices[index]) &&
		    set->devices[index].first_step < slots[leader].acquired) {
			slots[leader].acquired = set->devices[index].first_step;
		}
	}
	for (uint32_t turn = set->count; turn-- > 0U;) {
		const uint8_t index = slots[turn].turn;

		if (slots[index].leader == index && slots[index].acquired != OPWEST_NO_STEP) {
			while (move(set, slots, turn)) {
			}
		}
	}
}

static int32_t smaller(int64_t a, int32_t b)
{
	return a < b ? (int32_t)a : b;
}

/*
 * The kernel cannot end a wait for an owner early. A run can end after each slice; the owner has
 * the priority of the waiting thread during every slice.
 */
static int open_in_slices(const struct opwest_device *device, const struct opwest_slot *slot)
{
	const bool is_limited = device->own_timeout_ms >= 0;
	const int64_t end = opwest_port_uptime_ms() + device->own_timeout_ms;
	int32_t left = device->own_timeout_ms;
	int rc;

	do {
		const int32_t slice = is_limited ? smaller(left, OPWEST_DEVICES_SLICE_MS)
						 : OPWEST_DEVICES_SLICE_MS;

		if (opwest_devices_cancelled(slot)) {
			return -ECANCELED;
		}
		rc = opwest_accelerator_open(slot->dev, slice);
		if (is_limited) {
			/* A slice may take a tick of the system's clock more. */
			left = smaller(end - opwest_port_uptime_ms(), left - slice);
		}
	} while (rc == -EBUSY && (!is_limited || left > 0));
	return rc;
}

int opwest_devices_own(const struct opwest_device *device, struct opwest_slot *slot)
{
	int rc = open_in_slices(device, slot);

	if (rc != 0) {
		return rc;
	}
	rc = opwest_devices_power(device, slot->dev, true);
	if (rc < 0) {
		(void)opwest_accelerator_close(slot->dev);
		return rc;
	}
	slot->flags &= (uint8_t)~(OPWEST_SLOT_BY_NAME | OPWEST_SLOT_LOADED | OPWEST_SLOT_UNCOUNTED);
	slot->unfinished = 0U;
	slot->count = 0U;
	slot->jobs = 0U;
	slot->next = 0U;
	__atomic_store_n(&slot->owner, opwest_port_thread(), __ATOMIC_RELEASE);
	return 0;
}

/* Acquires a handle; `step` is for a failure. */
static int acquire(const struct opwest_device_set *set, struct opwest_slot *slots,
		   struct opwest_status *status, uint8_t index, uint16_t step)
{
	const int rc = opwest_devices_own(&set->devices[index], &slots[index]);

	if (rc == -ECANCELED) {
		return opwest_status_cancelled(status, step);
	}
	return rc == 0 ? 0
		       : opwest_devices_failed(set, status, 0, OPWEST_HOOK_OPEN, index, step, rc);
}

int opwest_devices_acquire(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint16_t step)
{
	int rc = 0;

	for (uint32_t turn = 0; turn < set->count && rc == 0; turn++) {
		const uint8_t index = slots[turn].turn;

		if (slots[index].leader == index && slots[index].acquired == step) {
			rc = acquire(set, slots, status, index, step);
		}
	}
	return rc;
}

int opwest_devices_acquire_all(const struct opwest_device_set *set, struct opwest_slot *slots,
			       struct opwest_status *status)
{
	int rc = 0;

	for (uint32_t turn = 0; turn < set->count && rc == 0; turn++) {
		const uint8_t index = slots[turn].turn;

		if (slots[index].leader == index && slots[index].acquired != OPWEST_NO_STEP) {
			rc = acquire(set, slots, status, index, slots[index].acquired);
		}
	}
	return rc;
}

int opwest_devices_disown(const struct opwest_device *device, struct opwest_slot *slot)
{
	int power;
	int rc;

	slot->flags &= (uint8_t)~OPWEST_SLOT_BY_NAME;
	rc = opwest_accelerator_close(slot->dev);
	power = opwest_devices_power(device, slot->dev, false);
	/* Not earlier: another thread could deactivate a device that has an owner. */
	__atomic_store_n(&slot->owner, 0U, __ATOMIC_RELEASE);
	return rc != 0 ? rc : power < 0 ? power : 0;
}

int opwest_devices_release(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint32_t index)
{
	const uint8_t leader = slots[index].leader;

	for (uint32_t i = 0; i < set->count; i++) {
		const uint16_t last = set->devices[i].last_step;

		if (slots[i].leader == leader && is_used(&set->devices[i]) &&
		    (last > set->devices[index].last_step ||
		     (last == set->devices[index].last_step && i > index))) {
			return 0; /* another member needs it */
		}
	}

	const int rc = opwest_devices_disown(&set->devices[leader], &slots[leader]);

	return rc == 0 ? 0
		       : opwest_devices_failed(set, status, 0, OPWEST_HOOK_CLOSE, leader,
					       OPWEST_NO_STEP, rc);
}

int opwest_devices_release_all(const struct opwest_device_set *set, struct opwest_slot *slots,
			       struct opwest_status *status, int first)
{
	for (uint32_t turn = set->count; turn-- > 0U;) {
		const uint8_t index = slots[turn].turn;

		if (slots[index].owner != 0U) {
			const int rc = opwest_devices_disown(&set->devices[index], &slots[index]);

			if (rc != 0) {
				first = opwest_devices_failed(set, status, first, OPWEST_HOOK_CLOSE,
							      index, OPWEST_NO_STEP, rc);
			}
		}
	}
	return first;
}
