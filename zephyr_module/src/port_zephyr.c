/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/logging/log.h>
#include <zephyr/sys/atomic.h>

#include <opwest/port.h>

LOG_MODULE_REGISTER(opwest, CONFIG_OPWEST_LOG_LEVEL);

BUILD_ASSERT(sizeof(opwest_port_flag_t) == sizeof(atomic_t), "a flag is an atomic_t");

bool opwest_port_take(opwest_port_flag_t *flag)
{
	return atomic_cas((atomic_t *)flag, 0, 1);
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	(void)atomic_set((atomic_t *)flag, 0);
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	LOG_ERR("%s: step %u returned %d", model, step, (int)code);
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	LOG_ERR("%s: %s of device %s returned %d", model, hook, device, (int)code);
}
