/* SPDX-License-Identifier: Apache-2.0 */
/* On Zephyr the thread starts at the device's initialisation. */
#define DT_DRV_COMPAT opwest_npu_emul

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>
#include <zephyr/pm/device.h>

#include "npu_emul_internal.h"

int opwest_npu_emul_start(const struct device *dev)
{
	ARG_UNUSED(dev);
	return 0;
}

void opwest_npu_emul_stop(const struct device *dev)
{
	ARG_UNUSED(dev);
}

static int npu_emul_init(const struct device *dev)
{
	const struct opwest_npu_emul_config *const config = npu_emul_config(dev);
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_accelerator_context_init(&data->context);
	opwest_port_sem_init(&data->work, 0, 1);
	opwest_port_sem_init(&data->wake, 0, 1);
	opwest_port_sem_init(&data->room, 0, 1);
	opwest_port_sem_init(&data->idle, 0, 1);
	opwest_port_mutex_init(&data->lock);
	data->thread.stack = config->stack;
	data->thread.stack_size = config->stack_size;
	data->thread.priority = CONFIG_OPWEST_NPU_EMUL_THREAD_PRIORITY;
	return opwest_port_thread_start(&data->thread, opwest_npu_emul_work, dev);
}

#ifdef CONFIG_PM_DEVICE
/* The memory of the device does not keep its program. */
static int npu_emul_pm_action(const struct device *dev, enum pm_device_action action)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	const bool off = action == PM_DEVICE_ACTION_SUSPEND || action == PM_DEVICE_ACTION_TURN_OFF;

	opwest_port_mutex_lock(&data->lock);
	if (action == PM_DEVICE_ACTION_RESUME) {
		data->counts.resumed++;
	} else if (action == PM_DEVICE_ACTION_SUSPEND) {
		data->counts.suspended++;
	}
	opwest_port_mutex_unlock(&data->lock);
	if (off) {
		opwest_npu_emul_forget(dev);
	}
	return 0;
}
#endif

#define NPU_EMUL_DEFINE(n)                                                                         \
	BUILD_ASSERT(DT_INST_PROP(n, queue_depth) >= 1 && DT_INST_PROP(n, queue_depth) <= 1024,    \
		     "queue-depth of an opwest,npu-emul must be 1 to 1024");                       \
	static K_KERNEL_STACK_DEFINE(npu_emul_stack_##n,                                           \
				     CONFIG_OPWEST_NPU_EMUL_THREAD_STACK_SIZE);                    \
	static struct opwest_npu_emul_job npu_emul_queue_##n[DT_INST_PROP(n, queue_depth)];        \
	static struct opwest_npu_emul_data npu_emul_data_##n;                                      \
	static const struct opwest_npu_emul_config npu_emul_config_##n = {                         \
		.latency_us = DT_INST_PROP(n, latency_us),                                         \
		.load_us = DT_INST_PROP(n, load_us),                                               \
		.queue_timeout_ms = DT_INST_PROP(n, queue_timeout_ms),                             \
		.queue_depth = DT_INST_PROP(n, queue_depth),                                       \
		.switching = DT_INST_ENUM_IDX(n, switching),                                       \
		.queue = npu_emul_queue_##n,                                                       \
		.stack = npu_emul_stack_##n,                                                       \
		.stack_size = K_KERNEL_STACK_SIZEOF(npu_emul_stack_##n),                           \
	};                                                                                         \
	PM_DEVICE_DT_INST_DEFINE(n, npu_emul_pm_action);                                           \
	DEVICE_DT_INST_DEFINE(n, npu_emul_init, PM_DEVICE_DT_INST_GET(n), &npu_emul_data_##n,      \
			      &npu_emul_config_##n, POST_KERNEL,                                   \
			      CONFIG_OPWEST_NPU_EMUL_INIT_PRIORITY, &opwest_npu_emul_api);

DT_INST_FOREACH_STATUS_OKAY(NPU_EMUL_DEFINE)
