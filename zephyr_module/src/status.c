/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <opwest/port.h>
#include <opwest/status.h>

int opwest_status_failed(struct opwest_status *status, const char *model, uint16_t step,
			 int32_t code)
{
	status->code = code;
	status->step = step;
	opwest_port_log_failure(model, step, code);
	return code > 0 ? -EIO : (int)code;
}

int opwest_status_already(void)
{
	return -EALREADY;
}
