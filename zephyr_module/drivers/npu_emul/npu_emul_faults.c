/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "npu_emul_internal.h"

struct opwest_npu_emul_fault opwest_npu_emul_due(struct opwest_npu_emul_data *data,
						 enum opwest_npu_emul_point point)
{
	struct opwest_npu_emul_fault *const fault = &data->faults[point];
	struct opwest_npu_emul_fault due = {.armed = false};

	data->counts.calls[point]++;
	if (!fault->armed) {
		return due;
	}
	if (fault->after > 0) {
		fault->after--;
		return due;
	}
	due = *fault;
	fault->armed = false;
	return due;
}

int opwest_npu_emul_begin(const struct device *dev, enum opwest_npu_emul_point point)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	struct opwest_npu_emul_fault due;

	opwest_port_mutex_lock(&data->lock);
	due = opwest_npu_emul_due(data, point);
	opwest_port_mutex_unlock(&data->lock);
	return due.armed ? due.error : 0;
}

int opwest_npu_emul_end(const struct device *dev, enum opwest_npu_emul_point point, int rc)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	if (rc == 0) {
		data->counts.succeeded[point]++;
	}
	opwest_port_mutex_unlock(&data->lock);
	return rc;
}

int opwest_npu_emul_inject(const struct device *dev, enum opwest_npu_emul_point point,
			   uint32_t after, int error)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	if ((unsigned int)point >= OPWEST_NPU_EMUL_POINTS || error > 0) {
		return -EINVAL;
	}
	opwest_port_mutex_lock(&data->lock);
	data->faults[point] = (struct opwest_npu_emul_fault){
		.armed = error != 0,
		.error = error,
		.after = after,
	};
	opwest_port_mutex_unlock(&data->lock);
	return 0;
}

void opwest_npu_emul_hang(const struct device *dev, uint32_t after)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	data->faults[OPWEST_NPU_EMUL_JOB] = (struct opwest_npu_emul_fault){
		.armed = true,
		.hangs = true,
		.after = after,
	};
	opwest_port_mutex_unlock(&data->lock);
}

void opwest_npu_emul_resume(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	if (data->faults[OPWEST_NPU_EMUL_JOB].hangs) {
		data->faults[OPWEST_NPU_EMUL_JOB].armed = false;
	}
	data->resuming = data->running;
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->wake);
}

void opwest_npu_emul_count(const struct device *dev, struct opwest_npu_emul_counts *counts)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	*counts = data->counts;
	opwest_port_mutex_unlock(&data->lock);
}

void opwest_npu_emul_reset(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	memset(&data->counts, 0, sizeof(data->counts));
	memset(data->faults, 0, sizeof(data->faults));
	opwest_port_mutex_unlock(&data->lock);
}
