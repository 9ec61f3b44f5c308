/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>

#include <opwest/port.h>

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL;
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	fprintf(stderr, "opwest: %s: step %u returned %ld\n", model, (unsigned int)step,
		(long)code);
}
