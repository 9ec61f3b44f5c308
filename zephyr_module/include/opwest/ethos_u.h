/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Arm Ethos-U as an accelerator: functions for operators.
 *
 * A device of this driver is a devicetree node with the compatible `opwest,ethos-u`. Its hooks are
 * those of accelerator.h; a program is the custom operator payload that Vela makes ("COP1": the
 * NPU's configuration and one command stream). An operator specifies the arrays that the base
 * pointers of the command stream refer to:
 *
 * @code{.c}
 * int32_t infer(const int8_t *image, int8_t *arena, const struct device *npu)
 * {
 *         const struct opwest_ethos_u_inference inference = {
 *                 .count = 2,
 *                 .regions = {
 *                         {.data = weights, .size = sizeof(weights)},
 *                         {.data = (const uint8_t *)arena, .size = ARENA_SIZE},
 *                 },
 *         };
 *         return opwest_ethos_u_enqueue(npu, &inference);
 * }
 * @endcode
 *
 * The model maintains caches, according to its pools.
 */
#ifndef OPWEST_ETHOS_U_H_
#define OPWEST_ETHOS_U_H_

#include <stdint.h>

#include <opwest/accelerator.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ethosu_driver;

/** The number of base pointers of an Ethos-U. */
#define OPWEST_ETHOS_U_REGIONS 8U

/** The memory of one base pointer. */
struct opwest_ethos_u_region {
	/** Aligned to 16. The command stream may write it in spite of `const`. */
	const uint8_t *data;
	uint32_t size;
};

/** One run of a command stream. */
struct opwest_ethos_u_inference {
	/** The program to run; NULL for the one that the device is active with. */
	const struct opwest_program *program;
	/** The number of used regions. */
	uint32_t count;
	/** By base pointer: with Vela these are weights, scratch, fast scratch, inputs, outputs. */
	struct opwest_ethos_u_region regions[OPWEST_ETHOS_U_REGIONS];
};

/**
 * @brief Enqueue an inference, for operators that are `async`.
 *
 * Inferences of one device run in the order in which they were enqueued. After a failure
 * the later ones are not run, until opwest_accelerator_sync() has returned the error.
 *
 * @param dev       The device, owned by the caller.
 * @param inference The inference. It is copied; the program and the regions must exist until the
 *                  sync.
 *
 * @retval 0       It is in the queue.
 * @retval -EINVAL A region is not aligned, there are too many, or the NPU cannot run the program.
 * @retval -EPERM  The device has no owner.
 * @retval -EBUSY  The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_ethos_u_enqueue(const struct device *dev,
			   const struct opwest_ethos_u_inference *inference);

/**
 * @brief Run an inference, and wait for it and all earlier ones.
 *
 * @param dev        The device, owned by the caller.
 * @param inference  The inference.
 * @param timeout_ms The longest wait, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0          Done.
 * @retval -EINVAL    See opwest_ethos_u_enqueue().
 * @retval -EPERM     The device has no owner.
 * @retval -EBUSY     See opwest_ethos_u_enqueue().
 * @retval -EIO       The NPU failed in this or an earlier inference.
 * @retval -ETIMEDOUT The inference continues until opwest_accelerator_close() aborts it.
 */
int opwest_ethos_u_run(const struct device *dev, const struct opwest_ethos_u_inference *inference,
		       int32_t timeout_ms);

/**
 * @brief Return the handle of the vendor's driver, for example for performance counters.
 *
 * It is reserved for opwest: ethosu_reserve_driver() does not return it. Do not invoke
 * inferences with it while some are enqueued here.
 *
 * @param dev The device.
 *
 * @return The handle; NULL if the device is not ready
 */
struct ethosu_driver *opwest_ethos_u_driver(const struct device *dev);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ETHOS_U_H_ */
