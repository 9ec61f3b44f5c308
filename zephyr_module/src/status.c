/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

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
		[OPWEST_HOOK_OPERATOR] = "operator",     [OPWEST_HOOK_READY] = "ready",
		[OPWEST_HOOK_ACTIVATE] = "activate",     [OPWEST_HOOK_OPEN] = "open",
		[OPWEST_HOOK_CLOSE] = "close",           [OPWEST_HOOK_DEACTIVATE] = "deactivate",
		[OPWEST_HOOK_SYNC] = "sync",             [OPWEST_HOOK_CACHE] = "cache",
		[OPWEST_HOOK_INPUT] = "input",           [OPWEST_HOOK_OUTPUT] = "output",
		[OPWEST_HOOK_POOL] = "pool",             [OPWEST_HOOK_DEVICE] = "device",
		[OPWEST_HOOK_CHECK] = "check",           [OPWEST_HOOK_LOAD] = "load",
		[OPWEST_HOOK_CANCEL] = "cancel",
	};

	return hook < sizeof(names) / sizeof(names[0]) ? names[hook] : NULL;
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
