/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Arm Ethos-U as an accelerator: functions for operators.
 *
 * A device of this driver is a devicetree node with the compatible `opwest,ethos-u`. Its hooks are
 * those of accelerator.h; a program is the custom operator payload that Vela makes ("COP1": the
 * NPU's configuration and one command stream). An operator (`device: {launch: true}`) specifies the
 * arrays that the base pointers of the command stream refer to:
 *
 * @code{.c}
 * int32_t infer(const int8_t *image, int8_t *arena, const struct opwest_launch *launch)
 * {
 *         const struct opwest_ethos_u_inference inference = {
 *                 .count = 2,
 *                 .regions = {
 *                         {.data = weights, .size = sizeof(weights)},
 *                         {.data = (const uint8_t *)arena, .size = ARENA_SIZE},
 *                 },
 *         };
 *         return opwest_ethos_u_enqueue(launch, &inference);
 * }
 * @endcode
 *
 * The model maintains the caches of the arguments of its operators, according to their pools; this
 * driver and the vendor's do not. So all memory in cached RAM that the NPU uses is an argument: the
 * arena one that the operator writes, weights in RAM one that it reads. Flash needs none.
 */
#ifndef OPWEST_ETHOS_U_H_
#define OPWEST_ETHOS_U_H_

#include <stdint.h>

#include <opwest/accelerator.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ethosu_driver;

/** The number of base pointers of an Ethos-U that Vela uses. */
#define OPWEST_ETHOS_U_REGIONS 8U

/** The memory of one base pointer. */
struct opwest_ethos_u_region {
	/**
	 * Aligned to 16. The command stream may write it in spite of `const`. NULL for region 2:
	 * the `fast-memory` of the devicetree node, which all models of the device share.
	 */
	const uint8_t *data;
	uint32_t size;
};

/** One run of a command stream. */
struct opwest_ethos_u_inference {
	/** The number of used regions. */
	uint32_t count;
	/** By base pointer: with Vela these are weights, scratch, fast scratch, inputs, outputs. */
	struct opwest_ethos_u_region regions[OPWEST_ETHOS_U_REGIONS];
};

/**
 * @brief Enqueue an inference with the program of a launch, for operators that are `async`.
 *
 * Inferences of one device run in the order in which they were enqueued. After a failure
 * the later ones are not run, until opwest_accelerator_sync() has returned the error.
 *
 * @param launch    The launch. Its program is the current one of the device.
 * @param inference The inference. It is copied; the program and the regions must exist until the
 *                  sync.
 *
 * @retval 0       It is in the queue.
 * @retval -EINVAL A region is not aligned or missing, there are too many, or the program of the
 *                 launch is not that of the last opwest_accelerator_load().
 * @retval -ENOMEM The fast memory of the device is smaller than region 2.
 * @retval -EPERM  The device has no owner.
 * @retval -EAGAIN The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_ethos_u_enqueue(const struct opwest_launch *launch,
			   const struct opwest_ethos_u_inference *inference);

/**
 * @brief Run an inference, and wait for it and all earlier ones.
 *
 * @param launch    The launch, with the longest wait.
 * @param inference The inference.
 *
 * @retval 0          Done.
 * @retval -EINVAL    See opwest_ethos_u_enqueue().
 * @retval -ENOMEM    See opwest_ethos_u_enqueue().
 * @retval -EPERM     The device has no owner.
 * @retval -EAGAIN    See opwest_ethos_u_enqueue(); or the inference has not ended, and the time-out
 *                    of the launch is 0.
 * @retval -EIO       The NPU failed in this or an earlier inference.
 * @retval -ETIMEDOUT The inference continues until opwest_accelerator_close() aborts it.
 */
int opwest_ethos_u_run(const struct opwest_launch *launch,
		       const struct opwest_ethos_u_inference *inference);

/**
 * @brief Select the events that the NPU counts, and reset its counters.
 *
 * Requires CONFIG_OPWEST_ETHOS_U_PMU; opwest_profile_device() returns the counts. Initially these
 * are cycles with work, cycles of MACs, and beats of data read on each of the two interfaces.
 *
 * @param dev    The device.
 * @param events Four values of the vendor's enum ethosu_pmu_event_type (pmu_ethosu.h).
 *
 * @retval 0       Done.
 * @retval -EINVAL There is no such event.
 * @retval -EBUSY  An inference is running.
 */
int opwest_ethos_u_count_events(const struct device *dev, const uint16_t events[4]);

/**
 * @brief Return the handle of the vendor's driver.
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
