/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/device.h>
#include <zephyr/logging/log.h>

#include <opwest/port.h>

LOG_MODULE_REGISTER(opwest, CONFIG_OPWEST_LOG_LEVEL);

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL && device_is_ready(dev);
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	LOG_ERR("%s: step %u returned %d", model, step, (int)code);
}
