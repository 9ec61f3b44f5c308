/* SPDX-License-Identifier: Apache-2.0 */
/* On a host the thread runs only while the device is active, so none remains at the exit. */
#include "npu_emul_internal.h"

int opwest_npu_emul_start(const struct device *dev)
{
	return opwest_port_thread_start(&npu_emul_data(dev)->thread, opwest_npu_emul_work, dev);
}

static void set_stopping(struct opwest_npu_emul_data *data, bool stopping)
{
	opwest_port_mutex_lock(&data->lock);
	data->stopping = stopping;
	opwest_port_mutex_unlock(&data->lock);
}

void opwest_npu_emul_stop(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	set_stopping(data, true);
	opwest_port_sem_give(&data->work);
	opwest_port_thread_join(&data->thread);
	set_stopping(data, false);
}
