/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Emulated accelerators of a host program, where there is no devicetree.
 *
 * The program links drivers/npu_emul/npu_emul*.c (not the one for Zephyr), src/accelerator.c,
 * src/accelerator_context.c and src/port_sync_host.c, with -pthread.
 */
#ifndef OPWEST_NPU_EMUL_HOST_H_
#define OPWEST_NPU_EMUL_HOST_H_

#include <opwest/npu_emul_state.h>

/**
 * @brief Define an emulated accelerator: `static const struct device dev_name`.
 *
 * @param dev_name The variable, and the device's name.
 * @param latency  The time of a job, microseconds.
 */
#define OPWEST_NPU_EMUL_HOST_DEFINE(dev_name, latency)                                             \
	OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(dev_name, latency, 8, 1000, OPWEST_SWITCH_LOAD)

/**
 * @brief Define an emulated accelerator, its queue and its cost of another program.
 *
 * @param dev_name The variable, and the device's name.
 * @param latency  The time of a job, microseconds.
 * @param depth    The largest number of unfinished jobs.
 * @param timeout  The longest wait for a full queue, milliseconds.
 * @param switches enum opwest_switching.
 */
#define OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(dev_name, latency, depth, timeout, switches)             \
	static struct opwest_npu_emul_job dev_name##_queue[depth];                                 \
	static const struct opwest_npu_emul_config dev_name##_config = {                           \
		.latency_us = (latency),                                                           \
		.queue_timeout_ms = (timeout),                                                     \
		.queue_depth = (depth),                                                            \
		.switching = (switches),                                                           \
		.queue = dev_name##_queue,                                                         \
	};                                                                                         \
	static struct opwest_npu_emul_data dev_name##_data = {                                     \
		.context = OPWEST_ACCELERATOR_CONTEXT_HOST_INITIALIZER,                            \
		.work = OPWEST_PORT_SEM_HOST_INITIALIZER(0, 1),                                    \
		.wake = OPWEST_PORT_SEM_HOST_INITIALIZER(0, 1),                                    \
		.room = OPWEST_PORT_SEM_HOST_INITIALIZER(0, 1),                                    \
		.idle = OPWEST_PORT_SEM_HOST_INITIALIZER(0, 1),                                    \
		.lock = OPWEST_PORT_MUTEX_HOST_INITIALIZER,                                        \
	};                                                                                         \
	static const struct device dev_name = {                                                    \
		.name = #dev_name,                                                                 \
		.config = (const struct opwest_host_config *)&dev_name##_config,                   \
		.api = &opwest_npu_emul_api,                                                       \
		.data = (struct opwest_host_data *)&dev_name##_data,                               \
	}

#endif /* OPWEST_NPU_EMUL_HOST_H_ */
