/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What the sources of the emulated accelerator share.
 *
 * npu_emul.c has the hooks, npu_emul_queue.c the queue and the thread, npu_emul_enqueue.c what
 * operators call, npu_emul_program.c reads programs, npu_emul_kernels.c computes, npu_emul_faults.c
 * counts and fails, npu_emul_zephyr.c and npu_emul_host.c are the two systems.
 */
#ifndef OPWEST_NPU_EMUL_INTERNAL_H_
#define OPWEST_NPU_EMUL_INTERNAL_H_

#include <opwest/npu_emul_state.h>

#ifdef __ZEPHYR__
#include <zephyr/device.h>
#endif

/** @brief What a device is. */
static inline const struct opwest_npu_emul_config *npu_emul_config(const struct device *dev)
{
	return (const struct opwest_npu_emul_config *)dev->config;
}

/** @brief What changes in a device. */
static inline struct opwest_npu_emul_data *npu_emul_data(const struct device *dev)
{
	return (struct opwest_npu_emul_data *)dev->data;
}

/**
 * @brief Check all of a program.
 *
 * @param program The program, may be NULL.
 *
 * @retval 0       It can be used.
 * @retval -EINVAL It can't.
 */
int opwest_npu_emul_check(const struct opwest_program *program);

/**
 * @brief Look for a kernel in a program that was checked.
 *
 * @param program The program.
 * @param kind    What it computes.
 * @param id      Its number.
 * @param kernel  Filled in.
 *
 * @retval 0        Found.
 * @retval -ENOTSUP It offers no such kernel.
 */
int opwest_npu_emul_find(const struct opwest_program *program, enum opwest_npu_emul_kind kind,
			 uint16_t id, struct opwest_npu_emul_kernel *kernel);

/**
 * @brief Compute a job.
 *
 * @param job A job that was checked.
 */
void opwest_npu_emul_compute(const struct opwest_npu_emul_job *job);

/**
 * @brief Put a job into the queue; see opwest_npu_emul_dense().
 *
 * @param dev The device.
 * @param id  The kernel's number in the device's program.
 * @param job All of the job but its kernel, which is filled in.
 *
 * @retval 0 It is in the queue.
 * @return A negative errno of the functions that enqueue
 */
int opwest_npu_emul_put(const struct device *dev, uint16_t id, struct opwest_npu_emul_job *job);

/**
 * @brief Wait until nothing is unfinished.
 *
 * @param dev        The device.
 * @param timeout_ms How long, milliseconds; a negative number is forever.
 *
 * @retval 0          All jobs are done.
 * @retval -ETIMEDOUT Some job is unfinished.
 * @return Another negative errno: that of the first job that failed
 */
int opwest_npu_emul_wait(const struct device *dev, int32_t timeout_ms);

/**
 * @brief End all jobs, and wait until the running one has ended.
 *
 * @param dev The device.
 */
void opwest_npu_emul_abort(const struct device *dev);

/**
 * @brief Run jobs until `stopping` is set: what the device's thread does.
 *
 * @param dev The device.
 */
void opwest_npu_emul_work(const struct device *dev);

/**
 * @brief Start the device's thread at the first activation, where it does not run all the time.
 *
 * @param dev The device.
 *
 * @retval 0 It runs.
 * @return A negative errno
 */
int opwest_npu_emul_start(const struct device *dev);

/**
 * @brief End the device's thread at the last deactivation, where it does not run all the time.
 *
 * @param dev The device, without jobs.
 */
void opwest_npu_emul_stop(const struct device *dev);

/**
 * @brief Count the beginning of a call.
 *
 * @param dev   The device; the caller does not hold its lock.
 * @param point Which kind.
 *
 * @retval 0 Go on.
 * @return The negative errno that was injected
 */
int opwest_npu_emul_begin(const struct device *dev, enum opwest_npu_emul_point point);

/**
 * @brief Count the end of a call.
 *
 * @param dev   The device; the caller does not hold its lock.
 * @param point Which kind.
 * @param rc    What the call returns.
 *
 * @return rc
 */
int opwest_npu_emul_end(const struct device *dev, enum opwest_npu_emul_point point, int rc);

/**
 * @brief Take the fault that is due at a point, and count the call.
 *
 * @param data  The device's data; the caller holds its lock.
 * @param point Which kind.
 *
 * @return The fault; its `armed` tells whether there is one
 */
struct opwest_npu_emul_fault opwest_npu_emul_due(struct opwest_npu_emul_data *data,
						 enum opwest_npu_emul_point point);

#endif /* OPWEST_NPU_EMUL_INTERNAL_H_ */
