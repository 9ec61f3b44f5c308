/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include <opwest/model.h>
#include <opwest/port.h>
#include <opwest/status.h>

int opwest_status_failed(struct opwest_status *status, const char *model, uint16_t step,
			 int32_t code)
{
	if (status->code == 0) {
		status->code = code;
		status->step = step;
		status->hook = OPWEST_HOOK_OPERATOR;
		status->device = OPWEST_STATUS_NO_DEVICE;
		status->argument = OPWEST_NO_ARGUMENT;
		opwest_port_log_failure(model, step, code);
	}
	return status->code > 0 ? -EIO : (int)status->code;
}

const char *opwest_hook_name(uint8_t hook)
{
	static const char names[][12] = {
		[OPWEST_HOOK_OPERATOR] = "operator", [OPWEST_HOOK_READY] = "ready",
		[OPWEST_HOOK_ACTIVATE] = "activate", [OPWEST_HOOK_OPEN] = "open",
		[OPWEST_HOOK_CLOSE] = "close",       [OPWEST_HOOK_DEACTIVATE] = "deactivate",
		[OPWEST_HOOK_SYNC] = "sync",         [OPWEST_HOOK_CACHE] = "cache",
		[OPWEST_HOOK_INPUT] = "input",       [OPWEST_HOOK_OUTPUT] = "output",
		[OPWEST_HOOK_POOL] = "pool",         [OPWEST_HOOK_DEVICE] = "device",
		[OPWEST_HOOK_CHECK] = "check",       [OPWEST_HOOK_LOAD] = "load",
		[OPWEST_HOOK_CANCEL] = "cancel",
	};

	return hook < OPWEST_ARRAY_SIZE(names) ? names[hook] : NULL;
}

int opwest_status_hook_failed(struct opwest_status *status, const char *model, const char *device,
			      enum opwest_hook hook, uint8_t index, uint16_t step, int32_t code)
{
	status->code = code;
	status->step = step;
	status->hook = (uint8_t)hook;
	status->device = index;
	status->argument = OPWEST_NO_ARGUMENT;
	opwest_port_log_hook(model, device, opwest_hook_name((uint8_t)hook), code);
	return code > 0 ? -EIO : (int)code;
}

int opwest_status_cancelled(struct opwest_status *status, uint16_t step)
{
	status->code = -ECANCELED;
	status->step = step;
	status->hook = OPWEST_HOOK_CANCEL;
	status->device = OPWEST_STATUS_NO_DEVICE;
	status->argument = OPWEST_NO_ARGUMENT;
	return -ECANCELED;
}

static int refused(struct opwest_status *status, uint8_t hook, uint16_t argument, int code)
{
	status->code = code;
	status->step = OPWEST_NO_STEP;
	status->hook = hook;
	status->device = OPWEST_STATUS_NO_DEVICE;
	status->argument = argument;
	return code;
}

int opwest_status_invalid(struct opwest_status *status, uint8_t hook, uint16_t argument)
{
	return refused(status, hook, argument, -EINVAL);
}

int opwest_status_unreached(struct opwest_status *status, uint8_t hook, uint16_t argument)
{
	return refused(status, hook, argument, -EFAULT);
}

int opwest_status_already(void)
{
	return -EALREADY;
}

/* Check whether a buffer overlaps one of several others, whose sizes end at `end`. */
static bool hits(const void *buffer, uint32_t size, const void *const *others,
		 const uint32_t *sizes, const uint32_t *end)
{
	for (; sizes != end; others++, sizes++) {
		if (opwest_overlap(buffer, size, *others, *sizes)) {
			return true;
		}
	}
	return false;
}

uint32_t opwest_buffers_overlap(const uint32_t *table, const void *inputs, const void *outputs,
				const void *workspace)
{
	const void *const *at = inputs;
	const uint32_t *const in = &table[OPWEST_BUFFERS_COUNTS];
	const uint32_t *const out = in + table[1];
	const uint32_t *const pools = out + table[2];
	const uint32_t *const end = pools + table[3];
	uint32_t found = (uint32_t)OPWEST_HOOK_INPUT << 16;

	for (const uint32_t *size = in; size != pools; size++, at++, found++) {
		if (size == out) {
			at = outputs;
			found = (uint32_t)OPWEST_HOOK_OUTPUT << 16;
		}
		if (opwest_overlap(*at, *size, workspace, table[0]) ||
		    hits(*at, *size, workspace, pools, end) ||
		    (size >= out &&
		     (hits(*at, *size, inputs, in, out) || hits(*at, *size, outputs, out, size)))) {
			return found;
		}
	}
	return 0U;
}

uint32_t opwest_buffers_of_frames(const uint32_t *table, const void *inputs, const void *outputs,
				  const void *other_inputs, const void *other_outputs)
{
	const void *const *at = inputs;
	const uint32_t *const in = &table[OPWEST_BUFFERS_COUNTS];
	const uint32_t *const out = in + table[1];
	const uint32_t *const end = out + table[2];
	uint32_t found = (uint32_t)OPWEST_HOOK_INPUT << 16;

	for (const uint32_t *size = in; size != end; size++, at++, found++) {
		if (size == out) {
			at = outputs;
			found = (uint32_t)OPWEST_HOOK_OUTPUT << 16;
		}
		if (hits(*at, *size, other_outputs, out, end) ||
		    (size >= out && hits(*at, *size, other_inputs, in, out))) {
			return found;
		}
	}
	return 0U;
}
