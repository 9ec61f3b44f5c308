/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/logging/log.h>

#include <opwest/port.h>

LOG_MODULE_REGISTER(opwest, CONFIG_OPWEST_LOG_LEVEL);

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	LOG_ERR("%s: step %u returned %d", model, step, (int)code);
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	LOG_ERR("%s: %s of device %s returned %d", model, hook, device, (int)code);
}
