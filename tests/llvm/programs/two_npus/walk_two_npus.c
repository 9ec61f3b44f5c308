/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes all records of the models of examples/two_npus, and runs them on devices whose hooks and jobs print their
 * calls. Addresses are omitted, so the output is the same for every processor.
 */
#include <opwest/accelerator.h>
#include <opwest/npu_emul.h>
#include <two_npus.h>
#include <two_npus_serial.h>

#include "details.h"

static uint32_t calls, failing_call;

static int called(const char *what, const struct device *dev, int64_t with)
{
	const int rc = ++calls == failing_call ? -EIO : 0;

	text("  ");
	text(what);
	name(dev->name);
	number(with);
	errno_of(rc);
	text("\n");
	return rc;
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
	return dev->api != NULL;
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	return called("power", dev, on);
}

uint32_t opwest_port_cache_line(void)
{
	return 32U;
}

static int no_cache(void)
{
	text("  cache\n");
	return 0;
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	(void)data;
	(void)size;
	return no_cache();
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	(void)data;
	(void)size;
	return no_cache();
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	(void)data;
	(void)size;
	return no_cache();
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	text("log");
	name(model);
	name(device);
	name(hook);
	errno_of(code);
	text("\n");
}

static int hook_activate(const struct device *dev)
{
	return called("activate", dev, 0);
}

static int hook_check(const struct device *dev, const struct opwest_program *program)
{
	return called("check", dev, program == NULL ? 0 : program->size);
}

static int hook_load(const struct device *dev, const struct opwest_program *program)
{
	return called("load", dev, program == NULL ? 0 : program->size);
}

static int hook_open(const struct device *dev, int32_t timeout_ms)
{
	return called("open", dev, timeout_ms);
}

static int hook_close(const struct device *dev)
{
	return called("close", dev, 0);
}

static int hook_deactivate(const struct device *dev)
{
	return called("deactivate", dev, 0);
}

static int hook_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	return called("sync", dev, (int64_t)leave * 1000000 + timeout_ms);
}

static void hook_wake(const struct device *dev)
{
	(void)called("wake", dev, 0);
}

/* In place of the emulator: a job reads and writes its tensors, and ends at once. */
static void job(const int8_t *x, size_t count, const int8_t *weights, size_t weight_count, int8_t *y, size_t results)
{
	uint32_t sum = 1;

	for (size_t i = 0; i < weight_count; i++) {
		sum = sum * 31U + (uint8_t)weights[i];
	}
	for (size_t i = 0; i < results; i++) {
		sum = sum * 31U + (uint8_t)x[i % count];
		y[i] = (int8_t)(sum >> 24);
	}
}

int opwest_npu_emul_dense(const struct device *dev, uint16_t kernel, const int8_t *x, const int8_t *weights,
			  const int32_t *bias, int8_t *y, uint16_t rows, uint16_t inputs, uint16_t outputs)
{
	job(x, (size_t)rows * inputs, weights, (size_t)outputs * inputs, y, (size_t)rows * outputs);
	return called("dense", dev, kernel + (int64_t)bias[0] * 1000);
}

int opwest_npu_emul_conv2d(const struct device *dev, uint16_t kernel, const int8_t *x, const int8_t *weights,
			   const int32_t *bias, int8_t *y, const struct opwest_npu_emul_conv2d_shape *shape)
{
	const size_t results = (size_t)(shape->height / shape->stride) * (shape->width / shape->stride);
	const size_t taps = (size_t)shape->kernel_height * shape->kernel_width * shape->channels_in;

	job(x, (size_t)shape->height * shape->width * shape->channels_in, weights, taps * shape->channels_out, y,
	    results * shape->channels_out);
	return called("conv2d", dev, kernel + (int64_t)bias[0] * 1000);
}

int opwest_npu_emul_finish(const struct device *dev, int enqueued, int32_t timeout_ms)
{
	return enqueued != 0 ? enqueued : called("finish", dev, timeout_ms);
}

static const struct opwest_accelerator_driver_api hooks = {
	.activate = hook_activate,
	.check = hook_check,
	.open = hook_open,
	.load = hook_load,
	.sync = hook_sync,
	.wake = hook_wake,
	.close = hook_close,
	.deactivate = hook_deactivate,
};
static const struct device devices[] = {{"npu0", NULL, &hooks, NULL}, {"npu1", NULL, &hooks, NULL}};

/* Not X_WORKSPACE_DEFINE: a bare image here has no initialised data. */
static _Alignas(128) uint8_t memory[TWO_NPUS_POOL_SRAM_SIZE];
static _Alignas(128) uint8_t serial_memory[TWO_NPUS_SERIAL_POOL_SRAM_SIZE];
static struct two_npus_workspace workspace;
static struct two_npus_serial_workspace serial_workspace;

static void describe(const struct opwest_details *details, const struct opwest_registry *registry)
{
	const struct opwest_model *const model = details->model;

	of_model.count = 0;
	show_details(details);
	show_opwest_registry(registry);
	for (uint16_t i = 0; i <= model->step_count; i++) {
		text("step");
		name(opwest_model_step_name(model, i));
		text("\n");
	}
	for (uint16_t i = 0; i < model->operator_count; i++) {
		const struct opwest_entry *const entry = opwest_find(registry, model->operators[i].name);

		text(entry != NULL && entry->info == &model->operators[i] ? "" : "a name is not found\n");
	}
}

static void ended(const char *what, int rc, const struct opwest_status *status)
{
	text(what);
	errno_of(rc);
	errno_of(status->code);
	number(status->step);
	number(status->hook);
	number(status->device);
	number(status->argument);
	text("\n");
}

/* Open, run and close, with each call of a hook or of a job failing in turn. */
#define RUN(model, own)                                                                                                \
	do {                                                                                                           \
		const struct model##_devices context = {&devices[0], &devices[1]};                                     \
		int32_t label;                                                                                         \
		const struct model##_outputs outputs = {&label};                                                       \
                                                                                                                       \
		failing_call = 0;                                                                                      \
		do {                                                                                                   \
			calls = 0;                                                                                     \
			label = -1;                                                                                    \
			ended("open", model##_open(&(own), &context), &(own).status);                                  \
			for (size_t i = 0; (own).opened && i < 64; i++) {                                              \
				((int8_t *)(own).input.image)[i] = (int8_t)(i * 7U % 17U);                             \
			}                                                                                              \
			ended("run", model##_run(NULL, &outputs, &(own), &context), &(own).status);                    \
			number(label);                                                                                 \
			text("\n");                                                                                    \
			ended("close", model##_close(&(own), &context), &(own).status);                                \
			failing_call++;                                                                                \
		} while (calls >= failing_call);                                                                       \
	} while (0)

void walk(void)
{
	workspace.sram = memory;
	serial_workspace.sram = serial_memory;
	text("begin\n");
	describe(&two_npus_details, &two_npus_registry);
	describe(&two_npus_serial_details, &two_npus_serial_registry);
	RUN(two_npus, workspace);
	RUN(two_npus_serial, serial_workspace);
	text("end\n");
}
