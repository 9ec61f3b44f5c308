/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <zephyr/cache.h>
#include <zephyr/device.h>
#include <zephyr/logging/log.h>
#include <zephyr/pm/device_runtime.h>

#include <opwest/accelerator.h>
#include <opwest/port.h>

LOG_MODULE_REGISTER(opwest, CONFIG_OPWEST_LOG_LEVEL);

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL && device_is_ready(dev);
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
#ifdef DEVICE_API_IS
	return DEVICE_API_IS(opwest_accelerator, dev);
#else
	return dev->api != NULL;
#endif
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	return on ? pm_device_runtime_get(dev) : pm_device_runtime_put(dev);
}

/* A system without a cache, or with one that this Zephyr does not drive, answers -ENOTSUP. */
static int done(int rc)
{
	return rc == -ENOTSUP ? 0 : rc;
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	return done(sys_cache_data_flush_range((uint8_t *)data, size));
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	return done(sys_cache_data_flush_and_invd_range(data, size));
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	return done(sys_cache_data_invd_range(data, size));
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	LOG_ERR("%s: step %u returned %d", model, step, (int)code);
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	LOG_ERR("%s: %s of device %s returned %d", model, hook, device, (int)code);
}
