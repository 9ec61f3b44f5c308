/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators of the generated model `conventions`, in place of its own: each compares its arguments with the
 * model's metadata and with the call, allocates, and fails or not. Also the devices that wait for them.
 */
#include <errno.h>
#include <string.h>

#include <conventions.h>
#include <opwest/accelerator.h>
#include <opwest/tvm_ffi.h>
#include <opwest/tvm_packed.h>

#include "conventions_internal.h"
#include "packed.h"

const struct opwest_operator *called;
const struct opwest_value *given;
struct source *input;
int32_t entered, expected, sync_code, wakes;
size_t launches, returned_size;
uint8_t returned[8];

/* Arrays of launched operators: they must be kept until the wait. */
static const void *launched[2];
static uint8_t kept[2][256];
static size_t kept_size[2];

/* The ports for logging and devices are not under test. */
uintptr_t opwest_port_thread(void)
{
	return 1U; /* one thread */
}

bool opwest_port_take(opwest_port_flag_t *flag)
{
	const bool taken = *flag == 0; /* one thread */

	*flag = 1;
	return taken;
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	*flag = 0;
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	CHECK(model != NULL && step < conventions_model.step_count && code != 0);
}

void opwest_port_log_hook(const char *model, const char *name, const char *hook, int32_t code)
{
	CHECK(model != NULL && name != NULL && hook != NULL && code != 0);
}

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL;
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
	return dev != NULL;
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	(void)dev;
	(void)on;
	return 0;
}

static int64_t uptime_ms;

int64_t opwest_port_uptime_ms(void)
{
	return uptime_ms;
}

static int synced(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	(void)dev;
	CHECK(leave == 0U && timeout_ms >= 0);
	if (wakes > 0) { /* the work is unfinished; the caller waits again */
		wakes--;
		return -EINTR;
	}
	for (; launches > 0U; launches--) {
		CHECK(memcmp(launched[launches - 1U], kept[launches - 1U], kept_size[launches - 1U]) == 0);
	}
	uptime_ms += sync_code == -ETIMEDOUT ? timeout_ms : 0;
	return sync_code;
}

static const struct opwest_accelerator_driver_api api = {.sync = synced};
const struct device npu = {"npu", NULL, &api, NULL};
const struct device dma = {"dma", NULL, NULL, NULL};

bool is_real(uint8_t dtype)
{
	return dtype == OPWEST_FLOAT32 || dtype == OPWEST_FLOAT64;
}

static bool is_added(const struct opwest_tensor *arg)
{
	return strncmp(arg->name, "opwest_", 7) == 0;
}

static void check_tensor(const DLTensor *tensor, const struct opwest_tensor *arg, const struct opwest_value *value,
			 bool ffi)
{
	static const uint8_t codes[] = {[OPWEST_UINT8] = kDLUInt,	 [OPWEST_INT32] = kDLInt,
					[OPWEST_FLOAT16] = kDLFloat, [OPWEST_FLOAT64] = kDLFloat};
	const bool boolean = arg->dtype == OPWEST_BOOL;
	const size_t bits = opwest_dtype_size(arg->dtype) * 8U;
	int64_t stride = 1;

	CHECK(tensor->device.device_type == kDLCPU && tensor->device.device_id == 0 && tensor->byte_offset == 0U);
	CHECK(tensor->ndim == arg->rank && tensor->dtype.lanes == 1U);
	CHECK(tensor->dtype.code == (boolean ? (ffi ? kDLBool : kDLUInt) : codes[arg->dtype]));
	CHECK(tensor->dtype.bits == (boolean && !ffi ? 1U : bits));
	CHECK((tensor->strides != NULL) == (ffi && arg->rank > 0U));
	for (size_t i = arg->rank; i-- > 0U;) {
		CHECK(tensor->shape[i] == arg->shape[i]);
		CHECK(tensor->strides == NULL || tensor->strides[i] == stride);
		stride *= tensor->shape[i];
	}
	CHECK(((uintptr_t)tensor->data & (OPWEST_TENSOR_ALIGN(arg->flags) - 1U)) == 0U);
	CHECK(value == NULL || tensor->data == value->as.out);
	if (arg->direction != OPWEST_IN) {
		memset(tensor->data, (int)take(input, 1), arg->size);
	}
}

int32_t decide(bool *failed)
{
	struct opwest_tvm_workspace *const note = opwest_port_tvm_current();
	const struct opwest_tensor *const last = &called->args[called->arg_count - 1U];

	CHECK((note != NULL) == (strcmp(last->name, "opwest_workspace") == 0));
	if (note != NULL) {
		CHECK(given == NULL || note->memory == given[called->arg_count - 1U].as.out);
		CHECK(((size_t)note->units << note->shift) + 2U * ((note->units + 7U) / 8U) == last->size);
	}

	*failed = allocate(input) && note != NULL;

	const uint8_t how = (uint8_t)take(input, 1);
	const int32_t code = how < 128U ? 0 : how < 160U ? -1 : how < 192U ? (int8_t)how : (int32_t)take(input, 4);

	entered++;
	if (code != 0 && (called->flags & OPWEST_OPERATOR_ASYNC) != 0U) {
		launches--; /* a failing operator has launched no work */
	}
	return code;
}

/* The work of operators whose result the runtime converts as TVM's. */
static int32_t work(void)
{
	bool failed;
	const int32_t code = decide(&failed);

	expected = code != 0 && failed ? -ENOMEM : code == -1 ? -EIO : code;
	return code;
}

static void keep(const void *arrays, size_t size)
{
	if ((called->flags & OPWEST_OPERATOR_ASYNC) != 0U) {
		CHECK(launches < 2U && size <= sizeof(kept[0]));
		if (given != NULL) { /* not on the stack */
			const struct opwest_value *const last = &given[called->arg_count - 1U];

			CHECK((uintptr_t)arrays >= (uintptr_t)last->as.out);
			CHECK((uintptr_t)arrays + size <= (uintptr_t)last->as.out + last->size);
		}
		launched[launches] = arrays;
		kept_size[launches] = size;
		memcpy(kept[launches++], arrays, size);
	}
}

static int32_t packed(TVMValue *values, const int32_t *codes, int32_t count, uint8_t *result, int32_t *result_code,
		      void *resource)
{
	int32_t at = 0;

	CHECK(resource == NULL && *result_code == kTVMNullptr);
	for (size_t i = 0; i < called->arg_count; i++) {
		const struct opwest_tensor *const arg = &called->args[i];
		const struct opwest_value *const value = given != NULL ? &given[i] : NULL;

		if (is_added(arg)) {
			continue;
		}
		CHECK(at < count);
		if ((arg->flags & OPWEST_TENSOR_SCALAR) == 0U && strcmp(arg->name, "table") != 0) {
			CHECK(codes[at] == kTVMDLTensorHandle);
			check_tensor(values[at].v_handle, arg, value, false);
		} else if ((arg->flags & OPWEST_TENSOR_SCALAR) == 0U) {
			CHECK(codes[at] == kTVMOpaqueHandle && (value == NULL || values[at].v_handle == value->as.in));
		} else if (is_real(arg->dtype)) {
			const double real = value == NULL ? 0.0 : (double)(float)value->as.real;

			CHECK(codes[at] == kTVMArgFloat);
			CHECK(value == NULL || memcmp(&values[at].v_float64, &real, 8) == 0 || real != real);
		} else {
			CHECK(codes[at] == kTVMArgInt && (value == NULL || values[at].v_int64 == value->as.integer));
		}
		at++;
	}
	if ((called->flags & OPWEST_OPERATOR_DEVICE) != 0U) {
		CHECK(codes[at] == kTVMOpaqueHandle && (given == NULL || values[at].v_handle == &npu));
		CHECK(values[at++].v_handle != NULL);
	}
	CHECK(at == count);
	memset(result, 0x5a, 8);
	*result_code = (int32_t)take(input, 1);
	keep(values, (size_t)count * sizeof(*values));
	return work();
}

static int32_t ffi(void *handle, TVMFFIAny *values, int32_t count, TVMFFIAny *result)
{
	int32_t at = 0;

	CHECK(handle == NULL && result->type_index == kTVMFFINone && result->v_int64 == 0);
	for (size_t i = 0; i < called->arg_count; i++) {
		const struct opwest_tensor *const arg = &called->args[i];
		const struct opwest_value *const value = given != NULL ? &given[i] : NULL;

		if (is_added(arg)) {
			continue;
		}
		CHECK(at < count && values[at].zero_padding == 0U);
		if ((arg->flags & OPWEST_TENSOR_SCALAR) == 0U && strcmp(arg->name, "table") != 0) {
			CHECK(values[at].type_index == kTVMFFIDLTensorPtr);
			check_tensor(values[at].v_ptr, arg, value, true);
		} else if ((arg->flags & OPWEST_TENSOR_SCALAR) == 0U) {
			CHECK(values[at].type_index == kTVMFFIOpaquePtr);
			CHECK(value == NULL || values[at].v_ptr == value->as.in);
		} else if (is_real(arg->dtype)) {
			CHECK(values[at].type_index == kTVMFFIFloat);
			CHECK(value == NULL || memcmp(&values[at].v_float64, &value->as.real, 8) == 0);
		} else {
			CHECK(values[at].type_index == (arg->dtype == OPWEST_BOOL ? kTVMFFIBool : kTVMFFIInt));
			CHECK(value == NULL || values[at].v_int64 == value->as.integer);
		}
		at++;
	}
	if ((called->flags & OPWEST_OPERATOR_DEVICE) != 0U) {
		CHECK(values[at].type_index == kTVMFFIOpaquePtr && (given == NULL || values[at].v_ptr == &npu));
		CHECK(values[at++].v_ptr != NULL);
	}
	CHECK(at == count);
	memset(result, 0x5a, sizeof(*result));
	keep(values, (size_t)count * sizeof(*values));
	return work();
}

void is_called(size_t index)
{
	if (called == NULL || given == NULL) {
		called = &conventions_operators[conventions_model.steps[entered].operator_index];
	}
	CHECK(called == &conventions_operators[index]);
	CHECK(expected == 0);
}

#define PACKED(name, index)                                                                                   \
	int32_t conventions__tvmgen_conventions_##name(void *args, int32_t *codes, int32_t count, void *ret,  \
						       int32_t *ret_code, void *resource)                     \
	{                                                                                                     \
		is_called(index);                                                                             \
		return packed(args, codes, count, ret, ret_code, resource);                                   \
	}
#define FFI(name, index)                                                                                      \
	int32_t conventions____tvm_ffi_##name(void *handle, void *args, int32_t count, void *result)          \
	{                                                                                                     \
		is_called(index);                                                                             \
		return ffi(handle, args, count, result);                                                      \
	}

PACKED(scale, 0)
PACKED(smooth, 1)
PACKED(gather, 2)
PACKED(move, 3)
PACKED(kinds, 4)
FFI(add, 5)
FFI(mix, 6)
FFI(launch, 7)
PACKED(launch, 8)

int32_t conventions__total(const int32_t *x, int32_t *sum)
{
	is_called(9);
	CHECK(given == NULL || (x == given[0].as.in && sum == given[1].as.out));
	*sum = x[0] ^ x[5];
	return work();
}

void conventions__negate(int32_t *x)
{
	is_called(10);
	CHECK(given == NULL || x == given[0].as.out);
	for (int i = 0; i < 6; i++) {
		x[i] = ~x[i];
	}
	entered++;
}
