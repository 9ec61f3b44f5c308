/* SPDX-License-Identifier: Apache-2.0 */
/* clock_gettime() is part of POSIX. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <opwest/port.h>

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL;
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
	(void)dev; /* a device without hooks has only a name */
	return true;
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	(void)dev;
	(void)on;
	return 0;
}

int64_t opwest_port_uptime_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uintptr_t opwest_port_thread(void)
{
	static _Thread_local char own;

	return (uintptr_t)&own;
}

bool opwest_port_take(opwest_port_flag_t *flag)
{
	return __atomic_exchange_n(flag, 1, __ATOMIC_ACQUIRE) == 0;
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	__atomic_store_n(flag, 0, __ATOMIC_RELEASE);
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	fprintf(stderr, "opwest: %s: step %u returned %ld\n", model, (unsigned int)step,
		(long)code);
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	fprintf(stderr, "opwest: %s: %s of device %s returned %ld\n", model, hook, device,
		(long)code);
}
