/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Arm Ethos-U as an accelerator: what operators call with the device that they are given.
 *
 * A device of this driver is a devicetree node with the compatible `opwest,ethos-u`. Its hooks are
 * those of accelerator.h; a program is the custom operator payload that Vela makes ("COP1": the
 * NPU's configuration and one command stream). An operator says which arrays the command stream's
 * base pointers stand for:
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
 * Caches are left to the model, whose pools say what is cached.
 */
#ifndef OPWEST_ETHOS_U_H_
#define OPWEST_ETHOS_U_H_

#include <stdint.h>

#include <opwest/accelerator.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ethosu_driver;

/** How many base pointers an Ethos-U has. */
#define OPWEST_ETHOS_U_REGIONS 8U

/** What one base pointer stands for. */
struct opwest_ethos_u_region {
	/**
	 * Aligned to 16. Whether it is written is up to the command stream, whatever `const` says.
	 */
	const uint8_t *data;
	uint32_t size;
};

/** One run of a command stream. */
struct opwest_ethos_u_inference {
	/** What to run; NULL for the program that the device is active with. */
	const struct opwest_program *program;
	/** How many of the regions are used. */
	uint32_t count;
	/** By base pointer: with Vela these are weights, scratch, fast scratch, inputs, outputs. */
	struct opwest_ethos_u_region regions[OPWEST_ETHOS_U_REGIONS];
};

/**
 * @brief Enqueue an inference, for operators that are `async`.
 *
 * Inferences of one device run in the order in which they were enqueued. After one that failed,
 * those behind it are not run, until opwest_accelerator_sync() has told the error.
 *
 * @param dev       The device, owned by the caller.
 * @param inference What to run. It is copied; the program and the regions stay until the sync.
 *
 * @retval 0       It is in the queue.
 * @retval -EINVAL A region is not aligned, there are too many, or the NPU can't run the program.
 * @retval -EPERM  Nobody owns the device.
 * @retval -EBUSY  The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_ethos_u_enqueue(const struct device *dev,
			   const struct opwest_ethos_u_inference *inference);

/**
 * @brief Run an inference and wait for it, and for all that was enqueued before.
 *
 * @param dev        The device, owned by the caller.
 * @param inference  What to run.
 * @param timeout_ms How long to wait, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0          Done.
 * @retval -EINVAL    See opwest_ethos_u_enqueue().
 * @retval -EPERM     Nobody owns the device.
 * @retval -EBUSY     See opwest_ethos_u_enqueue().
 * @retval -EIO       The NPU failed, at this inference or at one before.
 * @retval -ETIMEDOUT It goes on, until opwest_accelerator_close() aborts it.
 */
int opwest_ethos_u_run(const struct device *dev, const struct opwest_ethos_u_inference *inference,
		       int32_t timeout_ms);

/**
 * @brief The handle of the vendor's driver, for what this one does not offer: performance counters.
 *
 * It is reserved for opwest: ethosu_reserve_driver() gives it to nobody else. Don't invoke
 * inferences with it while some are enqueued here.
 *
 * @param dev The device.
 *
 * @return The handle; NULL where the device is not ready
 */
struct ethosu_driver *opwest_ethos_u_driver(const struct device *dev);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ETHOS_U_H_ */
