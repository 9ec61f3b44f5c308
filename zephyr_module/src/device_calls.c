/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <opwest/device_calls.h>

#include "devices_internal.h"

static const struct opwest_device *info_of(const struct opwest_call_device *device)
{
	return &device->set->devices[device->index];
}

static struct opwest_slot *slot_of(const struct opwest_call_device *device)
{
	return &device->slots[device->index];
}

/* The slot of the ownership: two members of the context may have one handle. */
static struct opwest_slot *leader_of(const struct opwest_call_device *device)
{
	return opwest_devices_leader(device->slots, device->index);
}

/* Two members with one handle may differ in power and limits: as in runs, the leader decides. */
static const struct opwest_device *owned_info(const struct opwest_call_device *device)
{
	return &device->set->devices[device->slots[device->index].leader];
}

static bool has_hooks(const struct opwest_call_device *device)
{
	return opwest_devices_has_hooks(info_of(device));
}

static int failed(const struct opwest_call_device *device, enum opwest_hook hook, int code)
{
	return opwest_status_hook_failed(device->status, device->set->model, info_of(device)->name,
					 hook, (uint8_t)device->index, OPWEST_NO_STEP, code);
}

static int check_open(const struct opwest_call_device *device)
{
	if (device->index >= device->set->count) {
		return -EINVAL;
	}
	return *device->opened ? 0 : -EPERM;
}

/* Only the owner reads the flags. */
static bool is_mine(const struct opwest_slot *slot)
{
	return __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) == opwest_port_thread() &&
	       (slot->flags & OPWEST_SLOT_BY_NAME) != 0U;
}

static bool is_owned(const struct opwest_call_device *device)
{
	return is_mine(leader_of(device));
}

static int check_owned(const struct opwest_call_device *device)
{
	const int rc = check_open(device);

	return rc != 0 || !has_hooks(device) || is_owned(device) ? rc : -EPERM;
}

/* One thread at a time uses a workspace, for calls by name, a run, or frames. */
static int check_free(const struct opwest_call_device *device)
{
	int rc = check_open(device);

	for (uint32_t i = 0; i < device->set->count && rc == 0; i++) {
		const struct opwest_slot *const slot = &device->slots[i];

		if (__atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) != 0U && !is_mine(slot)) {
			rc = -EBUSY;
		}
	}
	return rc;
}

/* A device that timed out may write into the caller's memory: no device stays active. */
static int ended(const struct opwest_call_device *device, int rc)
{
	if ((slot_of(device)->flags & OPWEST_SLOT_LOST) != 0U) {
		*device->opened = opwest_devices_abandon(device->set, device->slots);
	}
	return rc;
}

static const struct opwest_program *program_of(const struct opwest_requirement *requirement,
					       const struct opwest_device *info)
{
	return requirement->own_program != NULL ? requirement->own_program : info->program;
}

static int check_requirement(const struct opwest_requirement *requirement,
			     const struct opwest_device *info)
{
	const struct opwest_program *const program = program_of(requirement, info);

	if ((info->flags & OPWEST_DEVICE_FOREIGN) != 0U) {
		return -EXDEV; /* its handle is no struct device, which the operator takes */
	}
	if (requirement->type != NULL &&
	    (info->type == NULL || strcmp(info->type, requirement->type) != 0)) {
		return -EXDEV;
	}
	if (requirement->program != NULL &&
	    (program == NULL || strcmp(program->name, requirement->program) != 0)) {
		return -ENOEXEC;
	}
	return 0;
}

static uint32_t whole_lines(uint32_t size, uint32_t line)
{
	return (size + line - 1U) & ~(line - 1U);
}

/* The line size for maintenance; 0 if none is required. */
static uint32_t line_of(const struct opwest_call_device *device)
{
	return (info_of(device)->flags & OPWEST_DEVICE_COHERENT) != 0U ? 0U
								       : opwest_port_cache_line();
}

/* Lines that a device writes must not contain other data: the processor's copy is dropped. */
static int check_lines(const struct opwest_operator *info, const struct opwest_value *args,
		       uint32_t line)
{
	for (uint16_t i = 0; line != 0U && i < info->arg_count; i++) {
		if (args[i].kind == OPWEST_VALUE_OUT &&
		    (((uintptr_t)args[i].as.out & (line - 1U)) != 0U ||
		     args[i].size < whole_lines(info->args[i].size, line))) {
			return -EINVAL;
		}
	}
	return 0;
}

static int before(const struct opwest_operator *info, const struct opwest_value *args,
		  uint32_t line)
{
	int rc = 0;

	for (uint16_t i = 0; line != 0U && rc == 0 && i < info->arg_count; i++) {
		const uint32_t size = info->args[i].size;

		if (args[i].kind == OPWEST_VALUE_OUT) {
			rc = opwest_port_cache_flush_and_invalidate(args[i].as.out,
								    whole_lines(size, line));
		} else if (args[i].kind == OPWEST_VALUE_IN) {
			const uint8_t *const data = args[i].as.in;
			const uint32_t ahead = (uint32_t)((uintptr_t)data & (line - 1U));

			rc = opwest_port_cache_flush(data - ahead, whole_lines(ahead + size, line));
		}
	}
	return rc;
}

static int after(const struct opwest_operator *info, const struct opwest_value *args, uint32_t line)
{
	int rc = 0;

	for (uint16_t i = 0; line != 0U && rc == 0 && i < info->arg_count; i++) {
		if (args[i].kind == OPWEST_VALUE_OUT) {
			rc = opwest_port_cache_invalidate(args[i].as.out,
							  whole_lines(info->args[i].size, line));
		}
	}
	return rc;
}

/* Whether the calling thread has the mark of the workspace: from the first ownership to the last.
 */
static bool holds(const struct opwest_call_device *device)
{
	bool held = false;

	for (uint32_t i = 0; i < device->set->count; i++) {
		held = held || is_mine(&device->slots[i]);
	}
	return held;
}

static int enter(const struct opwest_call_device *device)
{
	if (device->index >= device->set->count) {
		return -EINVAL;
	}
	return device->running == NULL || holds(device) || opwest_port_take(device->running)
		       ? 0
		       : -EBUSY;
}

/* As enter(), for an owned device: the mark is not touched without one. */
static int enter_owned(const struct opwest_call_device *device)
{
	if (device->index < device->set->count && has_hooks(device) && !holds(device)) {
		return -EPERM;
	}
	return enter(device);
}

static int leave(const struct opwest_call_device *device, int rc)
{
	if (device->running != NULL && !holds(device)) {
		opwest_port_give(device->running);
	}
	return rc;
}

/* The functions up to opwest_own() are called by the only user of the workspace. */
static int own(const struct opwest_call_device *device)
{
	const int rc = check_free(device);

	if (rc != 0 || !has_hooks(device)) {
		return rc;
	}
	if (is_owned(device)) {
		return -EALREADY;
	}
	opwest_status_clear(device->status);
	if (!opwest_devices_owned(device->set, device->slots)) {
		/* Else a cancellation applies to the launches on the other devices. */
		opwest_devices_begin(device->set, device->slots);
	}

	const int code = opwest_devices_own(owned_info(device), leader_of(device));

	if (code == 0) {
		leader_of(device)->flags |= OPWEST_SLOT_BY_NAME;
		return 0;
	}
	return code == -ECANCELED && opwest_devices_cancelled(device->slots)
		       ? opwest_status_cancelled(device->status, OPWEST_NO_STEP)
		       : failed(device, OPWEST_HOOK_OPEN, code);
}

static bool needs_wait(const struct opwest_entry *entry, const struct opwest_call_device *device)
{
	return (entry->info->flags & OPWEST_OPERATOR_ASYNC) != 0U && has_hooks(device);
}

/* Calls an operator whose device is ready for it. */
static int32_t call(const struct opwest_entry *entry, const struct opwest_value *args,
		    const struct opwest_call_device *device)
{
	const struct opwest_launch *const launch = &slot_of(device)->launch;
	int32_t code;

	do {
		code = entry->adapter(args, launch);
	} while (code != 0 && has_hooks(device) &&
		 opwest_devices_again(device->set, device->slots, device->status, device->index,
				      code));
	/* A failed wait for room is the first error. */
	return code != 0 && device->status->code != 0 ? device->status->code : code;
}

static int prepare(const struct opwest_entry *entry, const struct opwest_call_device *device)
{
	const struct opwest_device_use use = {
		.program = program_of(entry->requirement, info_of(device)),
		.device = device->index,
	};

	if (has_hooks(device)) {
		return opwest_devices_prepare_use(device->set, device->slots, device->status, &use,
						  OPWEST_NO_STEP);
	}
	slot_of(device)->launch = (struct opwest_launch){
		.dev = slot_of(device)->dev,
		.program = use.program,
		.timeout_ms = info_of(device)->timeout_ms,
		.step = OPWEST_NO_STEP,
	};
	return 0;
}

/* Starts an operator on an owned device that meets its requirement. */
static int start(const struct opwest_entry *entry, const struct opwest_value *args,
		 const struct opwest_call_device *device)
{
	const struct opwest_operator *const info = entry->info;
	const uint32_t line = line_of(device);
	int rc = check_lines(info, args, line);

	if (rc != 0) {
		return rc;
	}
	opwest_status_clear(device->status);
	rc = before(info, args, line);
	if (rc != 0) {
		return failed(device, OPWEST_HOOK_CACHE, rc);
	}
	rc = prepare(entry, device);
	if (rc != 0) {
		return ended(device, rc);
	}

	const int32_t code = call(entry, args, device);

	if (code != 0) {
		return ended(device, code > 0 ? -EIO : (int)code);
	}
	if (needs_wait(entry, device)) {
		opwest_devices_launched(device->slots, device->index);
		return 0;
	}
	rc = after(info, args, line);
	return rc == 0 ? 0 : failed(device, OPWEST_HOOK_CACHE, rc);
}

static int launch(const struct opwest_entry *entry, const struct opwest_value *args,
		  const struct opwest_call_device *device)
{
	int rc = check_owned(device);

	if (rc == 0) {
		rc = check_requirement(entry->requirement, info_of(device));
	}
	return rc == 0 ? start(entry, args, device) : rc;
}

static int finish(const struct opwest_call_device *device)
{
	int rc = check_owned(device);

	if (rc != 0 || !has_hooks(device) || leader_of(device)->unfinished == 0U) {
		return rc;
	}
	rc = opwest_devices_sync(device->set, device->slots, device->status, device->index, 0U);
	return ended(device, rc);
}

/* A wait for one member of the context ends the launches of all members with its handle. */
static void forget_launches(const struct opwest_call_device *device)
{
	for (uint32_t i = 0; i < device->set->count; i++) {
		if (device->slots[i].leader == device->slots[device->index].leader) {
			device->slots[i].launched = OPWEST_NO_STEP;
		}
	}
}

static int disown(const struct opwest_call_device *device)
{
	const int owned = check_owned(device);

	if (owned != 0 || !has_hooks(device)) {
		return owned;
	}

	const int rc = finish(device);

	if (!is_owned(device)) { /* the wait timed out */
		return rc;
	}
	if (rc == -ECANCELED && opwest_devices_cancelled(device->slots)) {
		*device->opened = opwest_devices_abandon(device->set, device->slots);
		return rc;
	}

	forget_launches(device);

	const int code = opwest_devices_disown(owned_info(device), leader_of(device));

	return code == 0 || rc != 0 ? rc : failed(device, OPWEST_HOOK_CLOSE, code);
}

static int call_and_wait(const struct opwest_entry *entry, const struct opwest_value *args,
			 const struct opwest_call_device *device)
{
	int rc = check_open(device);

	if (rc == 0) {
		rc = check_requirement(entry->requirement, info_of(device));
	}
	if (rc != 0) {
		return rc;
	}

	const bool was_owned = is_owned(device);

	if (!was_owned) {
		rc = own(device);
	}
	if (rc != 0) {
		return rc;
	}
	rc = start(entry, args, device);
	if (rc == 0 && needs_wait(entry, device)) {
		rc = finish(device);
		if (rc == 0) {
			rc = after(entry->info, args, line_of(device));
			rc = rc == 0 ? 0 : failed(device, OPWEST_HOOK_CACHE, rc);
		}
	}
	if (!was_owned && *device->opened) {
		const struct opwest_status first = *device->status;
		const int released = disown(device);

		if (rc != 0) {
			*device->status = first;
		} else {
			rc = released;
		}
	}
	return rc;
}

int opwest_own(const struct opwest_call_device *device)
{
	const int entered = enter(device);

	return entered == 0 ? leave(device, own(device)) : entered;
}

int opwest_launch(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		  const struct opwest_call_device *device)
{
	const int rc = opwest_call_check(entry, args, count, device);

	if (rc != 0) {
		return rc;
	}
	if (device == NULL) {
		return -ENODEV; /* an operator without a device has passed the check without one */
	}

	const int entered = enter_owned(device);

	return entered == 0 ? leave(device, launch(entry, args, device)) : entered;
}

int opwest_wait(const struct opwest_call_device *device)
{
	const int entered = enter_owned(device);

	return entered == 0 ? leave(device, finish(device)) : entered;
}

int opwest_release(const struct opwest_call_device *device)
{
	const int entered = enter_owned(device);

	return entered == 0 ? leave(device, disown(device)) : entered;
}

int opwest_call_on_device(const struct opwest_entry *entry, const struct opwest_value *args,
			  const struct opwest_call_device *device)
{
	const int entered = enter(device);

	return entered == 0 ? leave(device, call_and_wait(entry, args, device)) : entered;
}
