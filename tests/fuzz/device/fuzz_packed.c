/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of TVM's conventions, on the generated model `conventions` with operators that check all arguments: by
 * name, through microTVM's table, and by run(). Also the workspaces and errors of the runtime for these operators.
 */
#include <errno.h>
#include <string.h>

#include <conventions.h>
#include <opwest/tvm_packed.h>

#include "packed.h"

#define MOST 8
#define INPUTS 5U
#define OUTPUTS 9U

static void *buffer(const struct opwest_tensor *arg, size_t extra)
{
	const size_t align = OPWEST_TENSOR_ALIGN(arg->flags);
	void *block;

	CHECK(posix_memalign(&block, align < 8U ? 8U : align, arg->size + extra) == 0);
	memset(block, (int)take(input, 1), arg->size + extra);
	return block;
}

/* Valid arguments; scalars are any valid ones. */
static void fill(struct opwest_value *values, void **blocks, const uint8_t *offset)
{
	for (size_t i = 0; i < called->arg_count; i++) {
		const struct opwest_tensor *const arg = &called->args[i];
		const uint64_t bits = take(input, 8);

		memset(&values[i], 0, sizeof(values[i]));
		values[i].dtype = arg->dtype;
		if ((arg->flags & OPWEST_TENSOR_SCALAR) == 0U) {
			const size_t extra = offset != NULL ? OPWEST_TENSOR_ALIGN(arg->flags) * (size_t)offset[i] : 0U;

			blocks[i] = buffer(arg, extra);
			values[i].kind = arg->direction == OPWEST_IN ? OPWEST_VALUE_IN : OPWEST_VALUE_OUT;
			values[i].size = arg->size;
			values[i].as.out = (uint8_t *)blocks[i] + extra;
		} else if (is_real(arg->dtype)) {
			float single;

			values[i].kind = OPWEST_VALUE_REAL;
			memcpy(&single, &bits, sizeof(single));
			memcpy(&values[i].as.real, &bits, sizeof(bits));
			values[i].as.real = arg->dtype == OPWEST_FLOAT32 ? (double)single : values[i].as.real;
		} else {
			values[i].kind = OPWEST_VALUE_INTEGER;
			values[i].as.integer = arg->dtype == OPWEST_INT8     ? (int8_t)bits
					       : arg->dtype == OPWEST_UINT8  ? (uint8_t)bits
					       : arg->dtype == OPWEST_INT16  ? (int16_t)bits
					       : arg->dtype == OPWEST_UINT16 ? (uint16_t)bits
					       : arg->dtype == OPWEST_BOOL   ? (int64_t)(bits & 1U)
					       : arg->dtype == OPWEST_INT32  ? (int32_t)bits
									     : (int64_t)bits;
		}
	}
}

static const struct conventions_devices devices = {.npu = &npu, .dma = &dma};

static int32_t wait_code; /* -ETIMEDOUT also if the driver did not wait */

static void open_workspace(struct conventions_workspace *workspace)
{
	*workspace = (struct conventions_workspace){.status = OPWEST_STATUS_INIT,
						    .slots = {OPWEST_SLOT_INIT, OPWEST_SLOT_INIT}};
	CHECK(posix_memalign((void **)&workspace->sram, CONVENTIONS_POOL_SRAM_ALIGN, CONVENTIONS_POOL_SRAM_SIZE) == 0);
	sync_code = (take(input, 1) & 7U) == 7U ? -(int32_t)(1U + take(input, 1) % 120U) : 0;
	if (sync_code == -EINTR) { /* not a result: a driver returns it once for each wake */
		sync_code = 0;
		wakes = 1 + (int32_t)(take(input, 1) % 3U);
	}
	wait_code = sync_code == -EAGAIN ? -ETIMEDOUT : sync_code;
	CHECK(conventions_open(workspace, &devices) == 0);
}

static void close_workspace(struct conventions_workspace *workspace)
{
	const bool opened = workspace->opened; /* false after a timeout of a device */

	CHECK(opened || wait_code == -ETIMEDOUT);
	CHECK(conventions_close(workspace, &devices) == (opened ? 0 : -EALREADY));
	free(workspace->sram);
}

static void call_by_name(void)
{
	const struct opwest_entry *const entry = &conventions_registry.entries[take(input, 1) % conventions_registry.count];
	struct conventions_workspace workspace;
	struct opwest_value values[MOST];
	void *blocks[MOST] = {NULL};

	called = entry->info;
	CHECK(called->arg_count <= MOST);
	open_workspace(&workspace);
	fill(values, blocks, NULL);
	given = values;

	const struct opwest_call_device device = conventions_call_device(&workspace, CONVENTIONS_DEVICE_NPU_INDEX);
	const bool on_device = (called->flags & OPWEST_OPERATOR_DEVICE) != 0U;
	const bool waits = (called->flags & OPWEST_OPERATOR_ASYNC) != 0U;
	const int code = opwest_call(entry, values, called->arg_count, on_device ? &device : NULL);

	CHECK(entered == 1 && launches == 0U);
	CHECK(returned_size == 0U ||
	      memcmp(values[called->arg_count - 1U].as.out, returned, returned_size) == 0);
	if (expected != 0) {
		CHECK(code == (expected > 0 ? -EIO : expected));
	} else {
		CHECK(code == (waits ? wait_code : 0));
	}
	close_workspace(&workspace);
	for (size_t i = 0; i < called->arg_count; i++) {
		free(blocks[i]);
	}
}

/* The adapter of a name in microTVM's table, or NULL if the function is an operator of its convention. */
static TVMBackendPackedCFunc in_table(uint16_t which)
{
	const TVMFuncRegistry *const table = TVMSystemLibEntryPoint()->registry;
	const char *name = table->names + sizeof(uint16_t);
	uint16_t count;

	memcpy(&count, table->names, sizeof(count));
	CHECK(count == conventions_model.operator_count);
	for (uint16_t i = 0; i < which % count; i++) {
		name += strlen(name) + 1U;
		CHECK(*name != '\0');
	}
	called = NULL;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, conventions_model.operators[i].name) == 0) {
			called = &conventions_model.operators[i];
		}
	}
	CHECK(called != NULL || strncmp(name, "tvmgen_", 7) == 0);
	return called != NULL ? table->funcs[which % count] : NULL;
}

static void call_in_table(void)
{
	const TVMBackendPackedCFunc function = in_table((uint16_t)take(input, 1));
	const uint8_t how = (uint8_t)take(input, 1);
	struct opwest_value values[MOST];
	void *blocks[MOST] = {NULL};
	uint8_t offsets[MOST];
	DLTensor tensors[MOST];

	if (function == NULL) {
		return;
	}

	const int right = called->arg_count + ((called->flags & OPWEST_OPERATOR_DEVICE) != 0U);
	const int count = (how & 1U) != 0U ? (int)(int8_t)take(input, 1) % 32 : right;
	const size_t room = count > 0 ? (size_t)count : 0U;
	TVMValue *args = malloc(room * sizeof(*args) + (room == 0U));
	int *codes = malloc(room * sizeof(*codes) + (room == 0U));
	TVMValue result = {.v_int64 = 17};
	int result_code = kTVMNullptr;
	bool fits = count == right;

	for (size_t i = 0; i < MOST; i++) {
		offsets[i] = (uint8_t)(take(input, 1) % 4U);
	}
	fill(values, blocks, offsets);
	given = values;
	for (size_t i = 0; i < room; i++) {
		const struct opwest_tensor *const arg = i < called->arg_count ? &called->args[i] : NULL;

		args[i].v_handle = NULL;
		codes[i] = kTVMOpaqueHandle;
		if (arg != NULL && (arg->flags & OPWEST_TENSOR_SCALAR) == 0U) {
			tensors[i] = (DLTensor){blocks[i], {kDLCPU, 0}, 0, {kDLInt, 8, 1}, NULL, NULL,
						(uint64_t)((uint8_t *)values[i].as.out - (uint8_t *)blocks[i])};
			args[i].v_handle = &tensors[i];
			codes[i] = kTVMDLTensorHandle;
		} else if (arg != NULL) {
			codes[i] = is_real(arg->dtype) ? kTVMArgFloat : kTVMArgInt;
			memcpy(&args[i], &values[i].as, sizeof(args[i]));
		} else if (i < (size_t)right) {
			args[i].v_handle = (void *)(uintptr_t)&npu;
		}
	}
	if ((how & 2U) != 0U && room > 0U) { /* a code that is not that of the argument */
		const size_t at = take(input, 1) % room;
		const int other = (how & 4U) != 0U ? (int)take(input, 4) : (int)take(input, 1);

		fits = fits && other == codes[at];
		codes[at] = other;
	}
	if (!fits && (how & 8U) != 0U) { /* must not be read then */
		memset(args, 0xff, room * sizeof(*args));
	}

	const int code = function(count != right && (how & 16U) != 0U ? NULL : args,
				  count != right && (how & 32U) != 0U ? NULL : codes, count, &result, &result_code, NULL);

	CHECK(entered == (fits ? 1 : 0));
	CHECK(code == (fits ? expected : -1));
	CHECK(result.v_int64 == 17 && result_code == kTVMNullptr);
	launches = 0U;
	for (size_t i = 0; i < called->arg_count; i++) {
		free(blocks[i]);
	}
	free(args);
	free(codes);
}

static void run_all(void)
{
	const struct opwest_model *const model = &conventions_model;
	struct conventions_workspace workspace;
	struct conventions_inputs inputs;
	struct conventions_outputs outputs;
	void *in[INPUTS], *out[OUTPUTS];

	CHECK(model->input_count == INPUTS && model->output_count == OUTPUTS);

	open_workspace(&workspace);
	for (size_t i = 0; i < INPUTS; i++) {
		in[i] = buffer(&model->inputs[i], 0U);
	}
	for (size_t i = 0; i < OUTPUTS; i++) {
		out[i] = buffer(&model->outputs[i], 0U);
	}
	memcpy(&inputs, in, sizeof(inputs));
	memcpy(&outputs, out, sizeof(outputs));
	given = NULL;

	const int code = conventions_run(&inputs, &outputs, &workspace, &devices);

	if (expected != 0) {
		CHECK(code == (expected > 0 ? -EIO : expected));
		CHECK(workspace.status.code == expected && workspace.status.step == entered - 1);
	} else if (sync_code != 0) {
		CHECK(code == wait_code && entered == 9);
	} else {
		CHECK(code == 0 && entered == model->step_count);
	}
	CHECK(launches == 0U);
	close_workspace(&workspace);
	for (size_t i = 0; i < INPUTS; i++) {
		free(in[i]);
	}
	for (size_t i = 0; i < OUTPUTS; i++) {
		free(out[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ways[])(void) = {call_by_name, call_in_table, run_all};
	struct source from = {data, size};
	const uint8_t how = (uint8_t)take(&from, 1);

	input = &from;
	entered = 0;
	expected = 0;
	returned_size = 0U;
	sync_code = 0;
	wakes = 0;
	launches = 0U;
	choose_port((how & 4U) != 0U);
	if (how % 4U == 3U) {
		threads_at_random(&from);
	} else {
		ways[how % 4U]();
	}
	CHECK(opwest_port_tvm_current() == NULL);
	return 0;
}
