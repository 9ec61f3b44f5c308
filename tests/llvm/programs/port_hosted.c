/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <opwest/port.h>

#include "port.h"

void port_write(const char *text)
{
	fputs(text, stdout);
}

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL;
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	printf("log %s %u %ld\n", model, (unsigned int)step, (long)code);
}

int main(void)
{
	walk();
	return 0;
}
