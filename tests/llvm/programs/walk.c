/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes all records of four models (show.h, which the test makes of their description), calls each of their
 * operators by name with arguments made from its signature, and runs them, with every failure of every hook.
 * Addresses and sizes of pointers are left out: every processor writes the same.
 */
#include <errno.h>
#include <string.h>

#include <accelerated.h>
#include <asynchronous.h>
#include <conventions.h>
#include <many_kinds.h>
#include <opwest/accelerator.h>
#include <opwest/tvm_workspace.h>

#include "show.h"

#define MOST_ARGS 16U

static _Alignas(128) uint8_t arena[MOST_ARGS][SLOT];

/* Programs have to be merged. */
static struct seen programs;

/* All fields of all records, and what the fields do not have: names that the runtime gives, shared programs. */
static void describe(const struct opwest_model *model, const struct opwest_registry *registry)
{
	of_model.count = 0;
	show_opwest_model(model);
	show_opwest_registry(registry);
	for (uint16_t i = 0; i <= model->step_count; i++) {
		text("step");
		name(opwest_model_step_name(model, i));
		text("\n");
	}
	for (uint16_t i = 0; i < model->device_count; i++) {
		const struct opwest_program *const program = model->devices[i].program;

		if (program != NULL) {
			text("program");
			name(program->name);
			identity(&programs, program->data);
			number((int64_t)((uintptr_t)program->data % 16U));
			text("\n");
		}
	}
}

static void dtypes(void)
{
	for (uint8_t code = 0; code < 14; code++) {
		text("dtype");
		number(code);
		name(opwest_dtype_name(code));
		number((int64_t)opwest_dtype_size(code));
		text("\n");
	}
}

static void look_up(const struct opwest_model *model, const struct opwest_registry *registry)
{
	static const char *const others[] = {"", "nothing", "x", "opwest", "copy_int", "copy_int88", "Mix", "mix ", "NO"};

	text("entries");
	for (uint32_t i = 0; i < registry->count; i++) {
		number(registry->entries[i].info - model->operators);
	}
	text("\n");
	for (uint16_t i = 0; i < model->operator_count; i++) {
		const struct opwest_entry *const entry = opwest_find(registry, model->operators[i].name);

		text(entry != NULL && entry->info == &model->operators[i] ? "" : "a name is not found\n");
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		text(opwest_find(registry, others[i]) == NULL ? "" : "found what is not there\n");
	}
}

static uint32_t state;

static uint8_t random_byte(void)
{
	state = state * 1664525U + 1013904223U;
	return (uint8_t)(state >> 24);
}

static void fill(void *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		((uint8_t *)data)[i] = random_byte();
	}
}

/* A scalar: its least, its greatest or any value. The float types take no NaN, which changes on its way. */
static struct opwest_value scalar(uint8_t dtype, unsigned int round)
{
	static const int64_t least[] = {INT8_MIN, 0, INT16_MIN, 0, INT32_MIN, 0, INT64_MIN, 0, 0, 0, 0, 0};
	static const int64_t most[] = {INT8_MAX,  UINT8_MAX, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX,
				       INT64_MAX, -1,        UINT16_MAX, 0,         0,         1};
	static const float floats[] = {-3.4028235e38F, 3.4028235e38F, 0.1F, -1.5F, 1.4e-45F, -0.0F};
	static const double doubles[] = {-1.7976931348623157e308, 1.7976931348623157e308, 0.1, -1.5, 5e-324, -0.0};
	uint64_t any;

	if (dtype == OPWEST_FLOAT32) {
		return opwest_real(dtype, (double)floats[round % COUNT(floats)]);
	}
	if (dtype == OPWEST_FLOAT64) {
		return opwest_real(dtype, doubles[round % COUNT(doubles)]);
	}
	if (round == 0) {
		return opwest_integer(dtype, least[dtype]);
	}
	if (round == 1) {
		return opwest_integer(dtype, most[dtype]);
	}
	fill(&any, sizeof(any));
	switch (dtype) {
	case OPWEST_INT8:
		return opwest_integer(dtype, (int8_t)any);
	case OPWEST_UINT8:
		return opwest_integer(dtype, (uint8_t)any);
	case OPWEST_INT16:
		return opwest_integer(dtype, (int16_t)any);
	case OPWEST_UINT16:
	case OPWEST_FLOAT16:
		return opwest_integer(dtype, (uint16_t)any);
	case OPWEST_INT32:
		return opwest_integer(dtype, (int32_t)any);
	case OPWEST_UINT32:
		return opwest_integer(dtype, (uint32_t)any);
	case OPWEST_BOOL:
		return opwest_integer(dtype, (int64_t)(any & 1));
	default:
		return opwest_integer(dtype, (int64_t)any);
	}
}

static void call(const struct opwest_registry *registry, const struct opwest_operator *operator,
		 const struct device *device, unsigned int round)
{
	struct opwest_value args[MOST_ARGS];

	for (uint16_t i = 0; i < operator->arg_count; i++) {
		const struct opwest_tensor *const tensor = &operator->args[i];

		if ((tensor->flags & OPWEST_TENSOR_SCALAR) != 0U) {
			args[i] = scalar(tensor->dtype, round);
			continue;
		}
		fill(arena[i], SLOT);
		args[i] = tensor->direction == OPWEST_IN ? opwest_in(tensor->dtype, arena[i], tensor->size)
							 : opwest_out(tensor->dtype, arena[i], tensor->size);
	}
	if ((strcmp(operator->name, "mix") == 0 || strcmp(operator->name, "move") == 0) && round == 3) {
		/* The step that fails, and what it returns. */
		const int32_t control[2] = {(int32_t)args[0].as.integer, -7};

		memcpy(arena[1], control, sizeof(control));
	}
	text("call");
	name(operator->name);
	errno_of(opwest_call(opwest_find(registry, operator->name), args, operator->arg_count, device));
	for (uint16_t i = 0; i < operator->arg_count; i++) {
		if (operator->args[i].direction != OPWEST_IN && operator->args[i].direction != OPWEST_SCRATCH) {
			bytes(arena[i], SLOT);
		}
	}
	text("\n");
	/* What is no call of it. */
	text(opwest_call(opwest_find(registry, operator->name), args, operator->arg_count + 1U, device) == -EINVAL &&
			     opwest_call(opwest_find(registry, operator->name), args, operator->arg_count,
					 device == NULL ? (const struct device *)arena : NULL) == -ENODEV
		     ? ""
		     : "an impossible call was made\n");
}

static void call_all(const struct opwest_model *model, const struct opwest_registry *registry)
{
	static const struct device own = {"Q", NULL, NULL, NULL};

	for (uint16_t i = 0; i < model->operator_count; i++) {
		const struct opwest_operator *const operator = &model->operators[i];
		const bool device = (operator->flags & OPWEST_OPERATOR_DEVICE) != 0U;

		for (unsigned int round = 0; round < 5; round++) {
			call(registry, operator, device ? &own : NULL, round);
		}
	}
}

/* Not X_WORKSPACE_DEFINE: a bare image here has no initialised data. */
static _Alignas(128) uint8_t accelerated_memory_sram[ACCELERATED_POOL_SRAM_SIZE];
static _Alignas(128) uint8_t accelerated_memory_fast[ACCELERATED_POOL_FAST_SIZE];
static _Alignas(128) uint8_t many_kinds_memory_fast[MANY_KINDS_POOL_FAST_SIZE];
static _Alignas(128) uint8_t many_kinds_memory_slow[MANY_KINDS_POOL_SLOW_SIZE];
static _Alignas(128) uint8_t asynchronous_memory_sram[ASYNCHRONOUS_POOL_SRAM_SIZE];
static _Alignas(128) uint8_t asynchronous_memory_shared[ASYNCHRONOUS_POOL_SHARED_SIZE];
static _Alignas(128) uint8_t conventions_memory_sram[CONVENTIONS_POOL_SRAM_SIZE];
static struct accelerated_workspace first;
static struct many_kinds_workspace second;
static struct asynchronous_workspace third;
static struct conventions_workspace fourth;
static _Alignas(128) uint8_t buffers[40][SLOT];

static void outputs_of(const struct opwest_model *model)
{
	for (uint16_t i = 0; i < model->output_count; i++) {
		text("output");
		name(model->outputs[i].name);
		bytes(buffers[model->input_count + i], model->outputs[i].size);
		text("\n");
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
	text("\n");
}

#define RUN(model, workspace, devices)                                                                                 \
	do {                                                                                                           \
		const void *pointers[COUNT(buffers)];                                                                  \
		struct model##_inputs inputs;                                                                          \
		struct model##_outputs outputs;                                                                        \
                                                                                                                       \
		for (size_t i = 0; i < COUNT(buffers); i++) {                                                          \
			pointers[i] = buffers[i];                                                                      \
			fill(buffers[i], SLOT);                                                                        \
		}                                                                                                      \
		memcpy(&inputs, pointers, sizeof(inputs));                                                             \
		memcpy(&outputs, pointers + model##_model.input_count, sizeof(outputs));                               \
		ended("close", model##_close(&(workspace), &(devices)), &(workspace).status);                          \
		ended("run", model##_run(&inputs, &outputs, &(workspace), &(devices)), &(workspace).status);           \
		ended("open", model##_open(&(workspace), &(devices)), &(workspace).status);                            \
		ended("open", model##_open(&(workspace), &(devices)), &(workspace).status);                            \
		ended("run", model##_run(&inputs, &outputs, &(workspace), &(devices)), &(workspace).status);           \
		outputs_of(&model##_model);                                                                            \
		for (size_t i = 0; i < sizeof(inputs) / sizeof(void *); i++) {                                         \
			struct model##_inputs wrong = inputs;                                                          \
			const void *odd = buffers[i] + 1;                                                              \
                                                                                                                       \
			memset((uint8_t *)&wrong + i * sizeof(void *), 0, sizeof(void *));                             \
			ended("null input", model##_run(&wrong, &outputs, &(workspace), &(devices)),                   \
			      &(workspace).status);                                                                    \
			memcpy((uint8_t *)&wrong + i * sizeof(void *), &odd, sizeof(odd));                             \
			ended("odd input", model##_run(&wrong, &outputs, &(workspace), &(devices)),                    \
			      &(workspace).status);                                                                    \
		}                                                                                                      \
		for (size_t i = 0; i < sizeof(outputs) / sizeof(void *); i++) {                                        \
			struct model##_outputs wrong = outputs;                                                        \
                                                                                                                       \
			memset((uint8_t *)&wrong + i * sizeof(void *), 0, sizeof(void *));                             \
			ended("null output", model##_run(&inputs, &wrong, &(workspace), &(devices)),                   \
			      &(workspace).status);                                                                    \
		}                                                                                                      \
		ended("run", model##_run(NULL, &outputs, &(workspace), &(devices)), &(workspace).status);              \
		ended("run", model##_run(&inputs, NULL, &(workspace), &(devices)), &(workspace).status);               \
		ended("run", model##_run(&inputs, &outputs, NULL, &(devices)), &(workspace).status);                   \
		ended("run", model##_run(&inputs, &outputs, &(workspace), NULL), &(workspace).status);                 \
		ended("close", model##_close(&(workspace), &(devices)), &(workspace).status);                          \
		ended("close", model##_close(&(workspace), &(devices)), &(workspace).status);                          \
	} while (0)

static void fail_each_step(void)
{
	static const struct accelerated_devices devices = ACCELERATED_DEVICES_DT_INIT;
	static const int32_t codes[] = {1, INT32_MAX, -EIO, -1, -INT32_MAX - 1};
	static _Alignas(16) int32_t control[2], y[16];
	const struct accelerated_inputs inputs = {control};
	const struct accelerated_outputs outputs = {y};

	ended("open", accelerated_open(&first, &devices), &first.status);
	for (size_t i = 0; i < COUNT(codes); i++) {
		for (int32_t step = 0; step < 10; step++) {
			control[0] = step;
			control[1] = codes[i];
			fill(first.input.x, ACCELERATED_INPUT_X_SIZE);
			ended("run", accelerated_run(&inputs, &outputs, &first, &devices), &first.status);
			bytes(y, sizeof(y));
			text("\n");
		}
	}
	ended("close", accelerated_close(&first, &devices), &first.status);
}

/* Devices whose hooks say that they were called, and one call of all that fails. */
static uint32_t calls, failing_call;
static int failing_code;

static int called(const char *what, const char *of, int64_t with)
{
	const int rc = ++calls == failing_call ? failing_code : 0;

	text("  ");
	text(what);
	name(of);
	number(with);
	errno_of(rc);
	text("\n");
	return rc;
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
	return dev->name[0] != 'P';
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	return called("power", dev->name, on);
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	return called("flush", "", (int64_t)((uintptr_t)data % 32U) * 1000 + size);
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	return called("flush and invalidate", "", (int64_t)((uintptr_t)data % 32U) * 1000 + size);
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	return called("invalidate", "", (int64_t)((uintptr_t)data % 32U) * 1000 + size);
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

/* One thread. */
static struct opwest_tvm_workspace *allocating;

void opwest_port_tvm_push(struct opwest_tvm_workspace *workspace)
{
	workspace->next = allocating;
	allocating = workspace;
}

void opwest_port_tvm_pop(struct opwest_tvm_workspace *workspace)
{
	allocating = workspace->next;
}

struct opwest_tvm_workspace *opwest_port_tvm_current(void)
{
	return allocating;
}

void opwest_port_tvm_log(const char *kind, const char *const *parts, int32_t count)
{
	text("log");
	name(kind);
	for (int32_t i = 0; i < count; i++) {
		name(parts[i]);
	}
	text("\n");
}

static int hook_activate(const struct device *dev, const struct opwest_program *program)
{
	return called("activate", dev->name, program == NULL ? 0 : program->size);
}

static int hook_open(const struct device *dev, int32_t timeout_ms)
{
	return called("open", dev->name, timeout_ms);
}

static int hook_close(const struct device *dev)
{
	return called("close", dev->name, 0);
}

static int hook_deactivate(const struct device *dev)
{
	return called("deactivate", dev->name, 0);
}

static int hook_sync(const struct device *dev, int32_t timeout_ms)
{
	return called("sync", dev->name, timeout_ms);
}

static const struct opwest_accelerator_driver_api hooks = {
	hook_activate, hook_open, hook_close, hook_deactivate, hook_sync,
};
static const struct opwest_accelerator_driver_api no_hooks;

/* As in operators/steps.c of the model. */
struct vendor_dsp {
	int32_t gain;
};

static struct vendor_dsp dsp;
/* One array: hooks are called in the order of addresses, which a linker is free to choose. */
static const struct device devices[] = {
	{"Right", NULL, &hooks, NULL},
	{"Left", NULL, &hooks, NULL},
	{"Narrow", NULL, &hooks, NULL},
	{"Bare", NULL, &no_hooks, NULL},
	{"Plain", NULL, NULL, NULL},
};

static void life(const struct asynchronous_devices *context)
{
	static _Alignas(128) int32_t control[32], raw[32], report[32], extra[12], sum[12];
	const struct asynchronous_inputs inputs = {control, raw, extra};
	const struct asynchronous_outputs outputs = {report, sum};

	control[0] = -1;
	fill(raw, sizeof(raw));
	fill(extra, sizeof(extra));
	memset(report, 0, sizeof(report));
	memset(sum, 0, sizeof(sum));
	calls = 0;
	ended("open", asynchronous_open(&third, context), &third.status);
	if (third.opened) {
		fill(third.input.image, ASYNCHRONOUS_INPUT_IMAGE_SIZE);
		fill(third.input.kept, ASYNCHRONOUS_INPUT_KEPT_SIZE);
	}
	ended("run", asynchronous_run(&inputs, &outputs, &third, context), &third.status);
	bytes(report, ASYNCHRONOUS_OUTPUT_REPORT_SIZE);
	bytes(sum, ASYNCHRONOUS_OUTPUT_SUM_SIZE);
	if (third.opened) {
		bytes(third.output.scores, ASYNCHRONOUS_OUTPUT_SCORES_SIZE);
		bytes(third.output.total, ASYNCHRONOUS_OUTPUT_TOTAL_SIZE);
		number((uint8_t *)third.input.image - third.shared);
		number((uint8_t *)third.input.kept - third.sram);
		number((uint8_t *)third.output.scores - third.shared);
		number((uint8_t *)third.output.total - third.shared);
	}
	text("\n");
	for (int32_t step = 0; third.opened && failing_call == 0 && step < 8; step++) {
		control[0] = step;
		control[1] = -77 - step;
		ended("run", asynchronous_run(&inputs, &outputs, &third, context), &third.status);
	}
	ended("close", asynchronous_close(&third, context), &third.status);
}

static void fail_each_hook(void)
{
	static const int codes[] = {-EIO, 5, -ETIMEDOUT};
	struct asynchronous_devices context = {&devices[1], &devices[0], &devices[2], &devices[4], &dsp};

	dsp.gain = 7;
	failing_call = 0;
	life(&context);
	for (size_t i = 0; i < COUNT(codes); i++) {
		failing_code = codes[i];
		failing_call = 0;
		do {
			failing_call++;
			text("call");
			number(failing_call);
			text(" fails\n");
			life(&context);
		} while (calls >= failing_call);
	}
	failing_call = 0;
	/* One device twice, one whose driver has no hook, one of another class, one that is missing. */
	context.right = context.left;
	life(&context);
	context.right = &devices[3];
	life(&context);
	context.right = &devices[4];
	life(&context);
	context.right = NULL;
	life(&context);
	context.right = &devices[3];
	context.dsp = NULL;
	life(&context);
}

void walk(void)
{
	static const struct accelerated_devices accelerated_context = ACCELERATED_DEVICES_DT_INIT;
	static const struct many_kinds_devices many_kinds_context = MANY_KINDS_DEVICES_DT_INIT;
	const struct asynchronous_devices asynchronous_context = {&devices[3], &devices[3], &devices[3], &devices[4], &dsp};

	const struct conventions_devices conventions_context = {&devices[3], &devices[4]};

	first.sram = accelerated_memory_sram;
	first.fast = accelerated_memory_fast;
	second.fast = many_kinds_memory_fast;
	second.slow = many_kinds_memory_slow;
	third.sram = asynchronous_memory_sram;
	third.shared = asynchronous_memory_shared;
	fourth.sram = conventions_memory_sram;
	text("begin\n");
	dtypes();
	describe(&accelerated_model, &accelerated_registry);
	describe(&many_kinds_model, &many_kinds_registry);
	describe(&asynchronous_model, &asynchronous_registry);
	describe(&conventions_model, &conventions_registry);
	look_up(&accelerated_model, &accelerated_registry);
	look_up(&many_kinds_model, &many_kinds_registry);
	look_up(&asynchronous_model, &asynchronous_registry);
	look_up(&conventions_model, &conventions_registry);
	call_all(&accelerated_model, &accelerated_registry);
	call_all(&many_kinds_model, &many_kinds_registry);
	call_all(&asynchronous_model, &asynchronous_registry);
	call_all(&conventions_model, &conventions_registry);
	RUN(accelerated, first, accelerated_context);
	RUN(many_kinds, second, many_kinds_context);
	RUN(asynchronous, third, asynchronous_context);
	RUN(conventions, fourth, conventions_context);
	fail_each_step();
	fail_each_hook();
	text("end\n");
}
