/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Shared declarations of the emulated accelerator.
 *
 * npu_emul.c has the hooks, npu_emul_queue.c the queue and the thread, npu_emul_enqueue.c the
 * functions for operators, npu_emul_program.c the reader of programs, npu_emul_kernels.c the
 * kernels, npu_emul_faults.c counts and faults, npu_emul_zephyr.c and npu_emul_host.c the parts of
 * each system.
 */
#ifndef OPWEST_NPU_EMUL_INTERNAL_H_
#define OPWEST_NPU_EMUL_INTERNAL_H_

#include <opwest/npu_emul_state.h>

#ifdef __ZEPHYR__
#include <zephyr/device.h>
#endif

/** @brief Return the constant properties of a device. */
static inline const struct opwest_npu_emul_config *npu_emul_config(const struct device *dev)
{
	return (const struct opwest_npu_emul_config *)dev->config;
}

/** @brief Return the state of a device. */
static inline struct opwest_npu_emul_data *npu_emul_data(const struct device *dev)
{
	return (struct opwest_npu_emul_data *)dev->data;
}

/**
 * @brief Check a program.
 *
 * @param program The program, may be NULL.
 *
 * @retval 0       The program is valid.
 * @retval -EINVAL It is not.
 */
int opwest_npu_emul_check(const struct opwest_program *program);

/**
 * @brief Find a kernel in a checked program.
 *
 * @param program The program.
 * @param kind    The kind of the kernel.
 * @param id      Its number.
 * @param kernel  Filled in.
 *
 * @retval 0        Found.
 * @retval -ENOTSUP There is no such kernel.
 */
int opwest_npu_emul_find(const struct opwest_program *program, enum opwest_npu_emul_kind kind,
			 uint16_t id, struct opwest_npu_emul_kernel *kernel);

/**
 * @brief Compute a job.
 *
 * @param job A checked job.
 */
void opwest_npu_emul_compute(const struct opwest_npu_emul_job *job);

/**
 * @brief Put a job into the queue; see opwest_npu_emul_dense().
 *
 * @param dev The device.
 * @param id  The kernel's number in the device's program.
 * @param job The job without its kernel, which is filled in.
 *
 * @retval 0 It is in the queue.
 * @return A negative errno of the functions that enqueue
 */
int opwest_npu_emul_put(const struct device *dev, uint16_t id, struct opwest_npu_emul_job *job);

/**
 * @brief End all jobs, and wait until the running one has ended.
 *
 * @param dev The device.
 */
void opwest_npu_emul_abort(const struct device *dev);

/**
 * @brief Run jobs until `stopping` is set: the function of the device's thread.
 *
 * @param dev The device.
 */
void opwest_npu_emul_work(const struct device *dev);

/**
 * @brief Lose the program, as a device that is powered down.
 *
 * @param dev The device, without jobs.
 */
void opwest_npu_emul_forget(const struct device *dev);

/**
 * @brief Start the device's thread at the first activation, if it does not run always.
 *
 * @param dev The device.
 *
 * @retval 0 It runs.
 * @return A negative errno
 */
int opwest_npu_emul_start(const struct device *dev);

/**
 * @brief End the device's thread at the last deactivation, if it does not run always.
 *
 * @param dev The device, without jobs.
 */
void opwest_npu_emul_stop(const struct device *dev);

/**
 * @brief Count the beginning of a call.
 *
 * @param dev   The device; the caller does not hold its lock.
 * @param point The kind of call.
 *
 * @retval 0 Continue.
 * @return The injected negative errno
 */
int opwest_npu_emul_begin(const struct device *dev, enum opwest_npu_emul_point point);

/**
 * @brief Count the end of a call.
 *
 * @param dev   The device; the caller does not hold its lock.
 * @param point The kind of call.
 * @param rc    The return value of the call.
 *
 * @return rc
 */
int opwest_npu_emul_end(const struct device *dev, enum opwest_npu_emul_point point, int rc);

/**
 * @brief Count a call, and return the fault that is due.
 *
 * @param data  The device's data; the caller holds its lock.
 * @param point The kind of call.
 *
 * @return The fault; `armed` is false if there is none
 */
struct opwest_npu_emul_fault opwest_npu_emul_due(struct opwest_npu_emul_data *data,
						 enum opwest_npu_emul_point point);

#endif /* OPWEST_NPU_EMUL_INTERNAL_H_ */
