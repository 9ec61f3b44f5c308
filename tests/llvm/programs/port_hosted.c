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

int64_t opwest_port_uptime_ms(void)
{
	return 0;
}

uintptr_t opwest_port_thread(void)
{
	return 1U; /* one thread */
}

bool opwest_port_take(opwest_port_flag_t *flag)
{
	const bool taken = *flag == 0; /* one thread */

	*flag = 1;
	return taken;
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	*flag = 0;
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
