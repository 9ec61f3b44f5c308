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
/** On a host a device is no more than its name. */
struct device {
	const char *name;
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
 * @brief Log the failure of a step.
 *
 * @param model The model's name.
 * @param step  The step, counted from 0.
 * @param code  What the operator returned.
 */
void opwest_port_log_failure(const char *model, uint16_t step, int32_t code);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PORT_H_ */
