/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What the portable core needs of the system around it: Zephyr, or a host.
 */
#ifndef OPWEST_PORT_H_
#define OPWEST_PORT_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __ZEPHYR__
struct opwest_accelerator_driver_api;
struct opwest_host_config;
struct opwest_host_data;

/** A device on a host, as Zephyr has it. One with no hooks is no more than its name. */
struct device {
	const char *name;
	/** What the driver never changes; the driver casts it to its own type. */
	const struct opwest_host_config *config;
	const struct opwest_accelerator_driver_api *api;
	/** What the driver changes; the driver casts it to its own type. */
	struct opwest_host_data *data;
};
#else
struct device;
#endif

/**
 * @brief Tell whether a device can be used.
 *
 * @param dev The device, may be NULL.
 *
 * @retval true  It is there and its driver's initialisation succeeded.
 * @retval false It is not.
 */
bool opwest_port_device_is_ready(const struct device *dev);

/**
 * @brief Tell whether a device is of the class of accelerators.
 *
 * @param dev The device, ready.
 *
 * @retval true  Its hooks can be called. Before Zephyr 4.1, which keeps no list of classes, always.
 * @retval false It is a device of another class, or has no hooks.
 */
bool opwest_port_device_has_hooks(const struct device *dev);

/**
 * @brief Power a device up before it is activated, and down after it was deactivated.
 *
 * Device runtime power management on Zephyr (CONFIG_PM_DEVICE_RUNTIME); nothing elsewhere.
 *
 * @param dev The device.
 * @param on  Up, or down.
 *
 * @retval 0 Done, or nothing to do.
 * @return A negative errno
 */
int opwest_port_device_power(const struct device *dev, bool on);

/**
 * @brief Write cached data back to memory, so that a device that does not see the cache can read
 * it.
 *
 * @param data The first byte, aligned to a cache line.
 * @param size Bytes, whole cache lines.
 *
 * @retval 0 Done, or there is no cache.
 * @return A negative errno
 */
int opwest_port_cache_flush(const uint8_t *data, uint32_t size);

/**
 * @brief Write cached data back and drop it, so that nothing of it is written back while a device
 * writes.
 *
 * @param data The first byte, aligned to a cache line.
 * @param size Bytes, whole cache lines.
 *
 * @retval 0 Done, or there is no cache.
 * @return A negative errno
 */
int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size);

/**
 * @brief Drop cached data, so that what a device wrote to memory is read.
 *
 * @param data The first byte, aligned to a cache line.
 * @param size Bytes, whole cache lines.
 *
 * @retval 0 Done, or there is no cache.
 * @return A negative errno
 */
int opwest_port_cache_invalidate(uint8_t *data, uint32_t size);

/**
 * @brief Log the failure of a step.
 *
 * @param model The model's name.
 * @param step  The step, counted from 0.
 * @param code  What the operator returned.
 */
void opwest_port_log_failure(const char *model, uint16_t step, int32_t code);

/**
 * @brief Log the failure of a device's hook.
 *
 * @param model  The model's name.
 * @param device The device's name in the manifest.
 * @param hook   The hook's name.
 * @param code   What it returned.
 */
void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PORT_H_ */
