/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks. */
#include <errno.h>
#include <stddef.h>

#include "npu_emul_internal.h"

static int npu_emul_load(const struct device *dev, const struct opwest_program *program)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	int rc = opwest_npu_emul_check(program);

	if (rc == 0) {
		rc = opwest_npu_emul_start(dev);
	}
	if (rc == 0) {
		opwest_port_mutex_lock(&data->lock);
		data->program = program;
		opwest_port_mutex_unlock(&data->lock);
	}
	return rc;
}

static int npu_emul_unload(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	data->program = NULL;
	opwest_port_mutex_unlock(&data->lock);
	opwest_npu_emul_abort(dev);
	opwest_npu_emul_stop(dev);
	return 0;
}

static int npu_emul_activate(const struct device *dev, const struct opwest_program *program)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	int rc = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_ACTIVATE);

	if (rc == 0) {
		rc = opwest_accelerator_context_activate(&data->context, dev, program,
							npu_emul_load);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_ACTIVATE, rc);
}

static int npu_emul_open(const struct device *dev, int32_t timeout_ms)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	int rc = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_OPEN);

	if (rc == 0) {
		rc = opwest_accelerator_context_open(&data->context, timeout_ms);
	}
	if (rc == 0) {
		opwest_port_mutex_lock(&data->lock);
		data->opened = true;
		data->first_error = 0;
		opwest_port_mutex_unlock(&data->lock);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_OPEN, rc);
}

static bool is_opened(struct opwest_npu_emul_data *data)
{
	bool opened;

	opwest_port_mutex_lock(&data->lock);
	opened = data->opened;
	opwest_port_mutex_unlock(&data->lock);
	return opened;
}

static int npu_emul_sync(const struct device *dev, int32_t timeout_ms)
{
	const int fault = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_SYNC);
	int rc = -EPERM;

	if (is_opened(npu_emul_data(dev))) {
		rc = opwest_npu_emul_wait(dev, timeout_ms);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_SYNC, rc == 0 ? fault : rc);
}

static int npu_emul_close(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	const int fault = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_CLOSE);
	bool opened;
	int rc = -EPERM;

	opwest_port_mutex_lock(&data->lock);
	opened = data->opened;
	data->opened = false;
	opwest_port_mutex_unlock(&data->lock);
	if (opened) {
		opwest_npu_emul_abort(dev);
		rc = opwest_accelerator_context_close(&data->context);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_CLOSE, rc == 0 ? fault : rc);
}

static int npu_emul_deactivate(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	const int fault = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_DEACTIVATE);
	const int rc = opwest_accelerator_context_deactivate(&data->context, dev,
								npu_emul_unload);

	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_DEACTIVATE, rc == 0 ? fault : rc);
}

OPWEST_ACCELERATOR_API(opwest_npu_emul_api) = {
	.activate = npu_emul_activate,
	.open = npu_emul_open,
	.close = npu_emul_close,
	.deactivate = npu_emul_deactivate,
	.sync = npu_emul_sync,
};

int opwest_npu_emul_finish(const struct device *dev, int enqueued, int32_t timeout_ms)
{
	return enqueued != 0 ? enqueued : opwest_npu_emul_wait(dev, timeout_ms);
}
