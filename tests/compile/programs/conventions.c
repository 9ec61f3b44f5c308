/* SPDX-License-Identifier: Apache-2.0 */
/* The golden model `conventions`: the arguments of its operators and the handling of their results. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include <conventions.h>
#include <opwest/accelerator.h>
#include <opwest/halide_buffer.h>
#include <opwest/tvm_backend.h>
#include <opwest/tvm_ffi.h>
#include <opwest/tvm_packed.h>
#include <opwest/tvm_workspace.h>

#include "../../golden/conventions/operators/queue.h"
#include "cases.h"

#define COUNT 6
static const int32_t table[COUNT] = {5, 3, 0, 1, 4, 2};

/* The steps of the manifest, in plain C. */
static void expect(const int32_t *image, uint8_t on, int32_t *scores, int32_t *sum)
{
	int32_t scaled[COUNT + 2] = {0}, smoothed[COUNT], launched[COUNT];

	for (int i = 0; i < COUNT; i++) {
		scaled[i + 1] = (int32_t)-(image[i] * INT64_C(-3) + INT64_C(9000000000) % 1000000007);
	}
	for (int i = 0; i < COUNT; i++) {
		smoothed[i] = scaled[i + 1] / 2 % 100003 + scaled[i + 2] / 4 + scaled[i] % 7;
	}
	for (int i = 0; i < COUNT; i++) {
		const int32_t moved = ~smoothed[table[i]];

		launched[i] = (int32_t)((int64_t)(int32_t)((moved / 2 + smoothed[i] / 2) * INT64_C(3)) * -1);
	}
	*sum = 0;
	for (int i = 0; i < COUNT; i++) {
		scores[i] = launched[table[i]] % 1000 * 10 + (on != 0);
		*sum += scores[i];
	}
}

static int first_above(const int32_t *x, int32_t limit)
{
	int place = 0;

	while (place < COUNT && x[place] <= limit) {
		place++;
	}
	return place;
}

struct run {
	_Alignas(64) int32_t image[COUNT];
	_Alignas(64) uint8_t d[1];
	_Alignas(64) int32_t scores[COUNT];
	_Alignas(64) int32_t sum[1];
	_Alignas(64) int32_t seen[4];
	_Alignas(64) uint8_t a[1];
	_Alignas(64) uint16_t b[1];
	_Alignas(64) double c[1];
	_Alignas(64) uint8_t label[1];
	_Alignas(64) double mean[1];
	_Alignas(64) int32_t turned[COUNT];
	_Alignas(64) int64_t total[1];
	_Alignas(64) double shifted[1];
};

/* The operators of Halide and MLIR; the first one takes the values that two others return. */
static void expect_turned(const int32_t *scores, const struct run *data)
{
	int64_t total = INT64_C(1) << 40;

	for (int i = 0; i < COUNT; i++) {
		const int32_t turned = (scores[i] / 2 + data->label[0] + (int32_t)(data->mean[0] * 4)) * -2;

		EXPECT(data->turned[i % 3 * 2 + i / 3] == turned);
		total += turned;
	}
	EXPECT(data->total[0] == total);
}

/* code, bits, lanes, rank, whether there is no shape: TVM up to 0.18 had bool as one bit. */
static const int32_t kinds[] = {1008110, 2016120, 2064101, 1001110};

static int run(struct run *data, struct conventions_workspace *workspace, const struct conventions_devices *devices)
{
	const struct conventions_inputs inputs = {data->image, data->a, data->b, data->c, data->d};
	const struct conventions_outputs outputs = {data->scores, data->sum, data->seen, data->label,
						    data->mean,   data->turned, data->total, data->shifted};

	return conventions_run(&inputs, &outputs, workspace, devices);
}

static void run_many(struct conventions_workspace *workspace, const struct conventions_devices *devices,
		     uint32_t seed, int times)
{
	struct run data;

	memset(&data, 0, sizeof(data));
	EXPECT(conventions_open(workspace, devices) == 0);
	for (int round = 0; round < times; round++) {
		int32_t scores[COUNT], sum;

		for (int i = 0; i < COUNT; i++) {
			seed = seed * 1664525U + 1013904223U;
			data.image[i] = (int32_t)(seed >> 8) % 100000;
		}
		data.d[0] = (uint8_t)(seed & 1U);
		expect(data.image, data.d[0], scores, &sum);
		EXPECT(run(&data, workspace, devices) == 0);
		EXPECT(memcmp(kinds, data.seen, sizeof(kinds)) == 0);
		EXPECT(memcmp(scores, data.scores, sizeof(scores)) == 0);
		EXPECT(sum == data.sum[0]);
		EXPECT(data.label[0] == 128 + first_above(scores, -300));
		EXPECT(data.shifted[0] == data.mean[0] + 0.5);
		expect_turned(scores, &data);
		EXPECT(data.mean[0] > sum / 6.0 - 1e-6 && data.mean[0] < sum / 6.0 + 1e-6);
	}
	EXPECT(conventions_close(workspace, devices) == 0);
}

CONVENTIONS_WORKSPACE_DEFINE(first);
CONVENTIONS_WORKSPACE_DEFINE(second);
static const struct conventions_devices devices = CONVENTIONS_DEVICES_DT_INIT;

static void case_results(void)
{
	run_many(&first, &devices, 1, 200);
}

static void *thread(void *workspace)
{
	run_many(workspace, &devices, workspace == &first ? 2 : 3, 300);
	return NULL;
}

static void case_threads(void)
{
	pthread_t other;

	EXPECT(pthread_create(&other, NULL, thread, &second) == 0);
	(void)thread(&first);
	EXPECT(pthread_join(other, NULL) == 0);
}

static struct opwest_value tensor(const int32_t *data, size_t size)
{
	return opwest_in(OPWEST_INT32, data, size);
}

static void case_by_name(void)
{
	static _Alignas(128) uint8_t memory[256];
	_Alignas(64) int32_t x[COUNT] = {100, -200, 300, -400, 500, -600};
	_Alignas(64) int32_t y[COUNT];
	struct opwest_value args[] = {tensor(x, sizeof(x)), opwest_out(OPWEST_INT32, y, sizeof(y)),
				      opwest_out(OPWEST_UINT8, memory, sizeof(memory))};
	const struct opwest_entry *smooth = opwest_find(&conventions_registry, "smooth");
	const struct opwest_entry *add = opwest_find(&conventions_registry, "add");

	EXPECT(smooth != NULL && smooth->info->arg_count == 3);
	EXPECT(strcmp(smooth->info->args[2].name, "opwest_workspace") == 0 && smooth->info->args[2].size == 98);
	EXPECT(opwest_call(smooth, args, 3, NULL) == 0);
	EXPECT(y[0] == 50 - 50 && y[1] == -100 + 75 + 100 % 7);
	EXPECT(opwest_call(smooth, args, 2, NULL) == -EINVAL);
	args[2] = opwest_out(OPWEST_UINT8, memory, 97);
	EXPECT(opwest_call(smooth, args, 3, NULL) == -EINVAL);
	args[1] = tensor(x, sizeof(x));
	args[2] = opwest_out(OPWEST_INT32, y, sizeof(y));
	EXPECT(opwest_call(add, args, 3, NULL) == 0);
	EXPECT(memcmp(x, y, sizeof(x)) == 0);
}

/* An operator that rejects its arguments. */
static void case_refused(void)
{
	_Alignas(64) int32_t x[COUNT] = {0}, y[COUNT];
	struct opwest_value args[] = {tensor(x, sizeof(x)), opwest_integer(OPWEST_INT8, 1),
				      opwest_integer(OPWEST_INT64, 1), opwest_real(OPWEST_FLOAT32, 1.0),
				      opwest_integer(OPWEST_BOOL, 0), opwest_out(OPWEST_INT32, y, sizeof(y))};

	EXPECT(opwest_call(opwest_find(&conventions_registry, "scale"), args, 6, NULL) == -EIO);
}

/* A device that works during the wait, with argument arrays that are out of scope. */
static struct queue queue;

static int load(const struct device *dev, const struct opwest_program *program)
{
	(void)dev;
	return program == NULL ? 0 : -EINVAL;
}

static int done(const struct device *dev)
{
	(void)dev;
	return 0;
}

static __attribute__((noinline)) void spoil_the_stack(void)
{
	volatile uint8_t junk[4096];

	for (size_t i = 0; i < sizeof(junk); i++) {
		junk[i] = 0xa5;
	}
}

static int work(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	EXPECT(leave == 0U && timeout_ms > 0 && timeout_ms <= 100);
	spoil_the_stack();
	for (int32_t job = 0; job < queue.count; job++) {
		const TVMFFIAny *const any = queue.args[job];
		const TVMValue *const values = queue.args[job];
		const bool packed = any->type_index != kTVMFFIDLTensorPtr;
		const DLTensor *const x = packed ? values[0].v_handle : any[0].v_ptr;
		const DLTensor *const y = packed ? values[2].v_handle : any[2].v_ptr;
		const int64_t by = packed ? values[1].v_int64 : any[1].v_int64;

		EXPECT((packed ? values[3].v_handle : any[3].v_ptr) == dev);
		EXPECT(x->shape[0] == 2 && y->shape[1] == 3);
		for (int i = 0; i < COUNT; i++) {
			((int32_t *)y->data)[i] = (int32_t)(((const int32_t *)x->data)[i] * by);
		}
	}
	EXPECT(queue.count == 2);
	queue.count = 0;
	return 0;
}

static void case_launched(void)
{
	static const struct opwest_accelerator_driver_api api = {
		.check = load, .load = load, .sync = work, .close = done, .deactivate = done};
	static const struct device npu = {"npu", NULL, &api, (struct opwest_host_data *)(void *)&queue};
	const struct conventions_devices context = {.npu = &npu, .dma = devices.dma};

	run_many(&first, &context, 4, 50);
}

/* The results of pipelines: codes of Halide without their sign, and errno for its memory. */
static void case_checks_of_halide(void)
{
	_Alignas(64) int32_t x[COUNT] = {1, 2, 3, 4, 5, 6}, y[COUNT];
	struct opwest_value args[] = {tensor(x, sizeof(x)), opwest_integer(OPWEST_INT32, 1),
				      opwest_out(OPWEST_INT32, y, sizeof(y))};
	const struct opwest_entry *entry = opwest_find(&conventions_registry, "limited");

	EXPECT(opwest_call(entry, args, 3, NULL) == 0 && memcmp(x, y, sizeof(x)) == 0);
	args[1] = opwest_integer(OPWEST_INT32, -1);
	EXPECT(opwest_call(entry, args, 3, NULL) == -EIO); /* from 9, a positive code */
	/* run() reports -EIO and records the code of Halide without its sign. */
	EXPECT(opwest_halide_code(-9) == 9 && opwest_halide_code(0) == 0 && opwest_halide_code(7) == 7);
	EXPECT(opwest_halide_code(-11) == -ENOMEM);
	args[1] = opwest_integer(OPWEST_INT32, 101);
	EXPECT(opwest_call(entry, args, 3, NULL) == -ENOMEM); /* an operator without a workspace */
}

static TVMBackendPackedCFunc in_library(const char *expected)
{
	const TVMFuncRegistry *const registry = TVMSystemLibEntryPoint()->registry;
	uint16_t count;
	const char *name = registry->names + sizeof(count);
	TVMBackendPackedCFunc found = NULL;

	memcpy(&count, registry->names, sizeof(count));
	EXPECT(count == 18);
	for (uint16_t i = 0; i < count; i++) {
		EXPECT(*name != '\0');
		if (strcmp(name, expected) == 0) {
			found = registry->funcs[i];
		}
		name += strlen(name) + 1;
	}
	EXPECT(*name == '\0');
	return found;
}

static void case_system_library(void)
{
	_Alignas(64) int32_t x[COUNT + 1] = {0, 1, 2, 3, 4, 5, 6}, y[COUNT];
	int64_t shape[] = {2, 3};
	DLTensor tensors[] = {{x, {kDLCPU, 0}, 2, {kDLInt, 32, 1}, shape, NULL, 4},
			      {y, {kDLCPU, 0}, 2, {kDLInt, 32, 1}, shape, NULL, 0}};
	TVMValue values[] = {{.v_handle = &tensors[0]}, {.v_handle = &tensors[1]}, {.v_handle = NULL}}, ret;
	int codes[] = {kTVMDLTensorHandle, kTVMDLTensorHandle, kTVMOpaqueHandle}, ret_code = kTVMNullptr;
	int tensor_codes[] = {7, 7, 7};
	static int marker;

	EXPECT(in_library("nothing") == NULL);
	values[2].v_handle = &marker;
	tensors[0].byte_offset = 0;
	EXPECT(in_library("tvmgen_conventions_move")(values, codes, 3, &ret, &ret_code, NULL) == 0);
	EXPECT(memcmp(x, y, sizeof(y)) == 0);
	/* An unpacked operator, with an offset. */
	tensors[0].byte_offset = 4;
	EXPECT(in_library("negate")(values, codes, 1, &ret, &ret_code, NULL) == 0);
	EXPECT(x[0] == 0 && x[1] == ~1 && x[6] == ~6);
	EXPECT(in_library("negate")(values, codes, 2, &ret, &ret_code, NULL) == -1);
	codes[0] = kTVMArgInt;
	EXPECT(in_library("negate")(values, codes, 1, &ret, &ret_code, NULL) == -1);
	/* One of tvm-ffi. */
	tensors[0].byte_offset = 0;
	values[2].v_handle = &tensors[1];
	values[1].v_handle = &tensors[0];
	EXPECT(in_library("add")(values, tensor_codes, 3, &ret, &ret_code, NULL) == 0);
	EXPECT(y[1] == ~1 / 2 * 2 && y[6 - 1] == ~5 / 2 * 2);
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, CASE(results), CASE(threads), CASE(by_name), CASE(refused),
			 CASE(launched), CASE(system_library), CASE(checks_of_halide));
}
