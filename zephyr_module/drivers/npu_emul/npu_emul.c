/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks. */
#include <errno.h>
#include <stddef.h>

#ifdef CONFIG_OPWEST_BUNDLE_DEVICES
#include <opwest/npu_emul_functions.h>
#endif

#include "npu_emul_internal.h"

static int npu_emul_info(const struct device *dev, struct opwest_accelerator_info *info)
{
	info->queue_depth = npu_emul_config(dev)->queue_depth;
	info->switching = npu_emul_config(dev)->switching;
	return 0;
}

static void set_program(const struct device *dev, const struct opwest_program *program)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	data->program = program;
	data->counts.loaded += program != NULL ? 1U : 0U;
	opwest_port_mutex_unlock(&data->lock);
}

void opwest_npu_emul_forget(const struct device *dev)
{
	set_program(dev, NULL);
	opwest_accelerator_context_forget(&npu_emul_data(dev)->context);
}

static int npu_emul_stop(const struct device *dev)
{
	set_program(dev, NULL);
	opwest_npu_emul_abort(dev);
	opwest_npu_emul_stop(dev);
	return 0;
}

static int npu_emul_activate(const struct device *dev)
{
	int rc = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_ACTIVATE);

	if (rc == 0) {
		rc = opwest_accelerator_context_activate(&npu_emul_data(dev)->context, dev,
							 opwest_npu_emul_start);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_ACTIVATE, rc);
}

static int npu_emul_check(const struct device *dev, const struct opwest_program *program)
{
	int rc = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_CHECK);

	if (rc == 0) {
		rc = opwest_npu_emul_check(program);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_CHECK, rc);
}

static int load_program(const struct device *dev, const struct opwest_program *program)
{
	const int rc = opwest_npu_emul_check(program);

	if (rc == 0) {
		opwest_port_sleep_us(npu_emul_config(dev)->load_us);
		set_program(dev, program);
	}
	return rc;
}

static int npu_emul_load(const struct device *dev, const struct opwest_program *program)
{
	int rc = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_LOAD);

	if (rc == 0) {
		rc = opwest_accelerator_context_load(
			&npu_emul_data(dev)->context, dev, program,
			(enum opwest_switching)npu_emul_config(dev)->switching, load_program);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_LOAD, rc);
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
		opwest_port_mutex_unlock(&data->lock);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_OPEN, rc);
}

static uint32_t npu_emul_enqueued(const struct device *dev)
{
	return opwest_accelerator_context_enqueued(&npu_emul_data(dev)->context);
}

static int npu_emul_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	const int fault = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_SYNC);
	const int rc =
		opwest_accelerator_context_sync(&npu_emul_data(dev)->context, leave, timeout_ms);

	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_SYNC, rc == 0 ? fault : rc);
}

static void npu_emul_wake(const struct device *dev)
{
	opwest_accelerator_context_wake(&npu_emul_data(dev)->context);
}

static int npu_emul_notify(const struct device *dev, opwest_accelerator_callback_t callback,
			   void *user)
{
	return opwest_accelerator_context_notify(&npu_emul_data(dev)->context, callback, user);
}

static int npu_emul_close(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	const int fault = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_CLOSE);
	int rc = -EPERM;

	if (opwest_accelerator_context_is_mine(&data->context)) {
		opwest_port_mutex_lock(&data->lock);
		data->opened = false;
		opwest_port_mutex_unlock(&data->lock);
		opwest_npu_emul_abort(dev);
		rc = opwest_accelerator_context_close(&data->context);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_CLOSE, rc == 0 ? fault : rc);
}

static int npu_emul_deactivate(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	const int fault = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_DEACTIVATE);
	const int rc = opwest_accelerator_context_deactivate(&data->context, dev, npu_emul_stop);

	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_DEACTIVATE, rc == 0 ? fault : rc);
}

OPWEST_ACCELERATOR_API(opwest_npu_emul_api) = {
	.info = npu_emul_info,
	.activate = npu_emul_activate,
	.check = npu_emul_check,
	.open = npu_emul_open,
	.load = npu_emul_load,
	.enqueued = npu_emul_enqueued,
	.sync = npu_emul_sync,
	.wake = npu_emul_wake,
	.notify = npu_emul_notify,
	.close = npu_emul_close,
	.deactivate = npu_emul_deactivate,
#ifdef CONFIG_OPWEST_BUNDLE_DEVICES
	.functions = &opwest_npu_emul_functions.base,
#endif
};

int opwest_npu_emul_finish(const struct device *dev, int enqueued, int32_t timeout_ms)
{
	return enqueued != 0
		       ? enqueued
		       : opwest_accelerator_context_drain(&npu_emul_data(dev)->context, timeout_ms);
}
