/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The functions of a driver that operators of bundles call.
 *
 * The image of a bundle is linked without the firmware. Its operators reach their driver through
 * the device of the context, as all of Zephyr's devices are reached: `dev->api`. The header of a
 * driver declares a structure of its functions, whose first member is the one below, and the hooks
 * of the driver (opwest_accelerator_driver_api) point to it. docs/writing-drivers.md shows both.
 */
#ifndef OPWEST_ACCELERATOR_FUNCTIONS_H_
#define OPWEST_ACCELERATOR_FUNCTIONS_H_

#include <stddef.h>
#include <stdint.h>

#include <opwest/accelerator.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An identifier of a structure of functions: four characters of the driver's choice. */
#define OPWEST_ACCELERATOR_FUNCTIONS_ID(a, b, c, d)                                                \
	((uint32_t)(a) | ((uint32_t)(b) << 8) | ((uint32_t)(c) << 16) | ((uint32_t)(d) << 24))

/** The first member of every structure of functions. */
struct opwest_accelerator_functions {
	/** See OPWEST_ACCELERATOR_FUNCTIONS_ID(). */
	uint32_t id;
	/** Bytes of the whole structure. A later version of the driver only appends members. */
	uint32_t size;
};

/**
 * @brief Return the functions of a device.
 *
 * @param dev  The device, an accelerator.
 * @param id   The structure that the caller expects.
 * @param size Its size, bytes.
 *
 * @return The first member of the structure; NULL if the driver has another one, an older one, or
 *         none
 */
static inline const struct opwest_accelerator_functions *
opwest_accelerator_functions(const struct device *dev, uint32_t id, size_t size)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);
	const struct opwest_accelerator_functions *const found =
		api != NULL ? api->functions : NULL;

	return found != NULL && found->id == id && found->size >= size ? found : NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ACCELERATOR_FUNCTIONS_H_ */
