/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <opwest/accelerator.h>
#include <opwest/device_calls.h>

static const struct opwest_device *info_of(const struct opwest_call_device *device)
{
	return &device->set->devices[device->index];
}

static struct opwest_slot *slot_of(const struct opwest_call_device *device)
{
	return &device->slots[device->index];
}

static bool has_hooks(const struct opwest_call_device *device)
{
	return (info_of(device)->flags & OPWEST_DEVICE_HOOKS) != 0U;
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

/* Returns the slot that owns the device: two members of the context may have one handle. */
static struct opwest_slot *owner_of(const struct opwest_call_device *device)
{
	for (uint32_t i = 0; i < device->set->count; i++) {
		if (device->slots[i].dev == slot_of(device)->dev &&
		    (device->slots[i].flags & OPWEST_SLOT_OPEN) != 0U) {
			return &device->slots[i];
		}
	}
	return NULL;
}

static int check_owned(const struct opwest_call_device *device)
{
	const int rc = check_open(device);

	return rc != 0 || !has_hooks(device) || owner_of(device) != NULL ? rc : -EPERM;
}

static int check_requirement(const struct opwest_requirement *requirement,
			     const struct opwest_device *info)
{
	if ((info->flags & OPWEST_DEVICE_FOREIGN) != 0U) {
		return -EXDEV; /* its handle is no struct device, which the operator takes */
	}
	if (requirement->type != NULL &&
	    (info->type == NULL || strcmp(info->type, requirement->type) != 0)) {
		return -EXDEV;
	}
	if (requirement->program != NULL &&
	    (info->program == NULL || strcmp(info->program->name, requirement->program) != 0)) {
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

int opwest_own(const struct opwest_call_device *device)
{
	const int rc = check_open(device);

	if (rc != 0 || !has_hooks(device)) {
		return rc;
	}
	if (owner_of(device) != NULL) {
		return -EALREADY;
	}
	opwest_status_clear(device->status);

	const int code = opwest_accelerator_open(slot_of(device)->dev, info_of(device)->timeout_ms);

	if (code != 0) {
		return failed(device, OPWEST_HOOK_OPEN, code);
	}
	slot_of(device)->flags |= OPWEST_SLOT_OPEN;
	return 0;
}

static bool needs_wait(const struct opwest_entry *entry, const struct opwest_call_device *device)
{
	return (entry->info->flags & OPWEST_OPERATOR_ASYNC) != 0U && has_hooks(device);
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
	rc = before(info, args, line);
	if (rc != 0) {
		return failed(device, OPWEST_HOOK_CACHE, rc);
	}

	const int32_t code = entry->adapter(args, slot_of(device)->dev);

	if (code != 0) {
		return code > 0 ? -EIO : (int)code;
	}
	if (needs_wait(entry, device)) {
		owner_of(device)->launched = 0U; /* any step: there is work to wait for */
		return 0;
	}
	rc = after(info, args, line);
	return rc == 0 ? 0 : failed(device, OPWEST_HOOK_CACHE, rc);
}

int opwest_launch(const struct opwest_entry *entry, const struct opwest_value *args, size_t count,
		  const struct opwest_call_device *device)
{
	int rc = opwest_call_check(entry, args, count, device);

	if (rc == 0) {
		/* An operator without a device has passed the check without one. */
		rc = device == NULL ? -ENODEV : check_owned(device);
	}
	if (rc == 0) {
		rc = check_requirement(entry->requirement, info_of(device));
	}
	return rc == 0 ? start(entry, args, device) : rc;
}

int opwest_wait(const struct opwest_call_device *device)
{
	const int rc = check_owned(device);

	if (rc != 0 || !has_hooks(device)) {
		return rc;
	}

	struct opwest_slot *const slot = owner_of(device);

	if (slot->launched == OPWEST_NO_STEP) {
		return 0;
	}

	const int code = opwest_accelerator_sync(slot->dev, info_of(device)->timeout_ms);

	slot->launched = OPWEST_NO_STEP;
	if (code == 0) {
		return 0;
	}

	const int first = failed(device, OPWEST_HOOK_SYNC, code);

	if (code == -ETIMEDOUT) {
		slot->flags |= OPWEST_SLOT_LOST;
		*device->opened = opwest_devices_abandon(device->set, device->slots);
	}
	return first;
}

int opwest_release(const struct opwest_call_device *device)
{
	const int waited = check_owned(device);

	if (waited != 0 || !has_hooks(device)) {
		return waited;
	}

	const int rc = opwest_wait(device);
	struct opwest_slot *const slot = owner_of(device);

	if (slot == NULL) { /* the wait timed out */
		return rc;
	}
	slot->flags &= (uint8_t)~OPWEST_SLOT_OPEN;

	const int code = opwest_accelerator_close(slot->dev);

	if (code == 0 || rc != 0) {
		return rc;
	}
	return failed(device, OPWEST_HOOK_CLOSE, code);
}

int opwest_call_on_device(const struct opwest_entry *entry, const struct opwest_value *args,
			  const struct opwest_call_device *device)
{
	int rc = check_open(device);

	if (rc == 0) {
		rc = check_requirement(entry->requirement, info_of(device));
	}
	if (rc != 0) {
		return rc;
	}

	const bool is_owned = owner_of(device) != NULL;

	if (!is_owned) {
		rc = opwest_own(device);
	}
	if (rc != 0) {
		return rc;
	}
	rc = start(entry, args, device);
	if (rc == 0 && needs_wait(entry, device)) {
		rc = opwest_wait(device);
		if (rc == 0) {
			rc = after(entry->info, args, line_of(device));
			rc = rc == 0 ? 0 : failed(device, OPWEST_HOOK_CACHE, rc);
		}
	}
	if (!is_owned && *device->opened) {
		const int released = opwest_release(device);

		rc = rc != 0 ? rc : released;
	}
	return rc;
}
