/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of steps on owned devices, waits for them, and the end of a cancelled run. */
#include <errno.h>

#include "devices_internal.h"

static int32_t time_left(int64_t end)
{
	const int64_t left = end - opwest_port_uptime_ms();

	return left <= 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int32_t)left;
}

/* Waits at most `limit`; in slices if nothing can wake the driver. */
static int wait_once(const struct opwest_slot *slot, uint32_t leave, int32_t limit)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(slot->dev);
	const bool can_wake = api == NULL || api->wake != NULL;

	if (can_wake || (limit >= 0 && limit <= OPWEST_DEVICES_SLICE_MS)) {
		return opwest_accelerator_sync(slot->dev, leave, limit);
	}

	const int rc = opwest_accelerator_sync(slot->dev, leave, OPWEST_DEVICES_SLICE_MS);

	return rc == -ETIMEDOUT ? -EINTR : rc;
}

int opwest_devices_wait(const struct opwest_device *info, struct opwest_slot *slot, uint32_t leave)
{
	const bool is_limited = info->timeout_ms > 0;
	const int64_t end = is_limited ? opwest_port_uptime_ms() + info->timeout_ms : 0;
	int rc;

	do {
		if (opwest_devices_cancelled(slot)) {
			return -ECANCELED;
		}
		rc = wait_once(slot, leave, is_limited ? time_left(end) : info->timeout_ms);
	} while (rc == -EINTR);
	/* With a time-out of 0, sync() has not waited. */
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

void opwest_devices_cancel(const struct opwest_device_set *set, struct opwest_slot *slots)
{
	/* First all flags: a thread that is woken looks at its own. */
	for (uint32_t i = 0; i < set->count; i++) {
		__atomic_store_n(&slots[i].cancelled, 1U, __ATOMIC_SEQ_CST);
	}
	for (uint32_t i = 0; i < set->count; i++) {
		if (opwest_devices_has_hooks(&set->devices[i]) && slots[i].dev != NULL) {
			opwest_accelerator_wake(slots[i].dev);
		}
	}
}

/* Returns the step that a failed wait names: OPWEST_NO_STEP for calls by name. */
static uint16_t first_launched(const struct opwest_device_set *set, const struct opwest_slot *slots,
			       uint32_t index)
{
	uint16_t step = OPWEST_NO_STEP;

	for (uint32_t i = 0; i < set->count; i++) {
		const bool is_counted = slots[index].launched != OPWEST_NO_STEP
						? i == index
						: slots[i].leader == slots[index].leader;

		if (is_counted && slots[i].launch.step != OPWEST_NO_STEP &&
		    slots[i].launched < step) {
			step = slots[i].launched;
		}
	}
	return step;
}

/* Waits until at most `leave` launches of a handle are unfinished; all members wait for all. */
static int wait_for(const struct opwest_device_set *set, struct opwest_slot *slots,
		    struct opwest_status *status, uint32_t index, uint32_t leave)
{
	struct opwest_slot *const leader = opwest_devices_leader(slots, index);
	const uint16_t step = first_launched(set, slots, index);
	int rc;

	if ((leader->flags & OPWEST_SLOT_UNCOUNTED) != 0U) {
		leave = 0U;
	}
	rc = opwest_devices_wait(&set->devices[index], leader, leave);
	if (rc == -ECANCELED && opwest_devices_cancelled(leader)) {
		return opwest_status_cancelled(status, step);
	}
	if (rc == -ETIMEDOUT) {
		slots[index].flags |= OPWEST_SLOT_LOST;
		slots[index].launched = OPWEST_NO_STEP;
	} else {
		if (leader->unfinished > leave) {
			leader->unfinished = leave;
		}
		if (leave == 0U) {
			slots[index].launched = OPWEST_NO_STEP;
			leader->flags &= (uint8_t)~OPWEST_SLOT_UNCOUNTED;
		}
	}
	return rc == 0 ? 0
		       : opwest_devices_failed(set, status, 0, OPWEST_HOOK_SYNC, index, step, rc);
}

int opwest_devices_sync(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status, uint32_t index, uint32_t leave)
{
	/* Launches of other members with the same handle are between those of this one. */
	for (uint32_t i = 0; i < set->count && leave > 0U; i++) {
		if (i != index && slots[i].leader == slots[index].leader) {
			leave = 0U;
		}
	}
	return wait_for(set, slots, status, index, leave);
}

static const struct opwest_program *loaded(const struct opwest_slot *leader)
{
	return (leader->flags & OPWEST_SLOT_LOADED) != 0U ? leader->launch.program : NULL;
}

/* A step without a program uses the loaded one. */
static bool is_loaded(const struct opwest_slot *leader, const struct opwest_device_use *use)
{
	return use->program == NULL || opwest_program_equal(loaded(leader), use->program);
}

/* Without a limit of the queue the count of launches is the limit. */
static uint32_t most_unfinished(const struct opwest_slot *leader)
{
	return leader->depth != 0U ? leader->depth : UINT32_MAX;
}

uint32_t opwest_devices_room(struct opwest_slot *slots, const struct opwest_device_use *use)
{
	const struct opwest_slot *const leader = opwest_devices_leader(slots, use->device);

	if ((leader->flags & OPWEST_SLOT_LOADS) != 0U && !is_loaded(leader, use)) {
		return 0U;
	}
	return most_unfinished(leader) - 1U;
}

static int load(const struct opwest_device_set *set, struct opwest_slot *slots,
		struct opwest_status *status, const struct opwest_device_use *use, uint16_t step)
{
	struct opwest_slot *const leader = opwest_devices_leader(slots, use->device);
	int rc = 0;

	if (is_loaded(leader, use)) {
		return 0;
	}
	if ((leader->flags & OPWEST_SLOT_LOADS) != 0U && leader->unfinished > 0U) {
		rc = wait_for(set, slots, status, use->device, 0U);
	}
	if (rc != 0) {
		return rc;
	}
	leader->flags &= (uint8_t)~OPWEST_SLOT_LOADED;
	rc = opwest_accelerator_load(leader->dev, use->program);
	if (rc != 0) {
		return opwest_devices_failed(set, status, 0, OPWEST_HOOK_LOAD, use->device, step,
					     rc);
	}
	leader->flags |= OPWEST_SLOT_LOADED;
	leader->launch.program = use->program;
	return 0;
}

int opwest_devices_prepare_use(const struct opwest_device_set *set, struct opwest_slot *slots,
			       struct opwest_status *status, const struct opwest_device_use *use,
			       uint16_t step)
{
	struct opwest_slot *const leader = opwest_devices_leader(slots, use->device);
	struct opwest_launch *const launch = &slots[use->device].launch;
	int rc;

	if (opwest_devices_cancelled(slots)) {
		return opwest_status_cancelled(status, step);
	}
	rc = load(set, slots, status, use, step);
	if (rc == 0 && leader->unfinished >= most_unfinished(leader)) {
		rc = wait_for(set, slots, status, use->device, most_unfinished(leader) - 1U);
	}
	if (rc != 0) {
		return rc;
	}
	launch->dev = leader->dev;
	launch->program = loaded(leader);
	launch->timeout_ms = set->devices[use->device].timeout_ms;
	launch->step = step;
	launch->slot = leader->next;
	leader->jobs = opwest_accelerator_enqueued(leader->dev);
	return 0;
}

int opwest_devices_prepare(const struct opwest_device_set *set, struct opwest_slot *slots,
			   struct opwest_status *status, uint32_t use, uint16_t step)
{
	return opwest_devices_prepare_use(set, slots, status, &set->uses[use], step);
}

bool opwest_devices_again(const struct opwest_device_set *set, struct opwest_slot *slots,
			  struct opwest_status *status, uint32_t index, int32_t code)
{
	struct opwest_slot *const leader = opwest_devices_leader(slots, index);

	if (opwest_devices_cancelled(slots)) {
		(void)opwest_status_cancelled(status, slots[index].launch.step);
		return false;
	}
	if (code != -EAGAIN || leader->unfinished == 0U) {
		return false;
	}
	return wait_for(set, slots, status, index, leader->unfinished - 1U) == 0;
}

void opwest_devices_launched(struct opwest_slot *slots, uint32_t index)
{
	struct opwest_slot *const slot = &slots[index];
	struct opwest_slot *const leader = opwest_devices_leader(slots, index);

	if (opwest_accelerator_enqueued(leader->dev) - leader->jobs != 1U) {
		leader->flags |= OPWEST_SLOT_UNCOUNTED;
	}
	leader->count++;
	leader->unfinished++;
	/* Not a remainder of the count: that would repeat a number when the count wraps. */
	leader->next = leader->depth == 0U || leader->next == leader->depth - 1U
			       ? 0U
			       : (uint16_t)(leader->next + 1U);
	if (slot->launched == OPWEST_NO_STEP) {
		/* A call by name has no step. */
		slot->launched = slot->launch.step == OPWEST_NO_STEP ? 0U : slot->launch.step;
	}
}
