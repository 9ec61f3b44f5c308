/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <zephyr/cache.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/pm/device_runtime.h>

#include <opwest/accelerator.h>
#include <opwest/port.h>

/* Bytes, for a cache whose line size is neither configured nor in the devicetree. */
#define MAX_LINE 128U

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

int64_t opwest_port_uptime_ms(void)
{
	return k_uptime_get();
}

uintptr_t opwest_port_thread(void)
{
	return (uintptr_t)k_current_get();
}

uint32_t opwest_port_cache_line(void)
{
#if defined(CONFIG_DCACHE) && defined(CONFIG_CACHE_MANAGEMENT)
	const uint32_t line = (uint32_t)sys_cache_data_line_size_get();

	return line != 0U ? line : MAX_LINE;
#else
	return 0U; /* CONFIG_DCACHE_LINE_SIZE is also set for processors without a cache */
#endif
}

/*
 * Zephyr returns -ENOTSUP if it manages no data cache, and if the driver of a cache lacks the
 * operation: then the data would not be coherent.
 */
static int done(int rc)
{
	return rc == -ENOTSUP && opwest_port_cache_line() == 0U ? 0 : rc;
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
