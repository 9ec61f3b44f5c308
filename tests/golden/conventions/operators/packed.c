/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of TVM's C runtime, as its C output has them: headers, visibility, the module's context. Written to the
 * binary interface by hand. Each checks everything that it is passed.
 */
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <dlpack/dlpack.h>
#include <tvm/runtime/crt/error_codes.h>
#include <string.h>

#include "queue.h"

#define COUNT 6

void* __tvm_module_ctx = NULL;

#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t tvmgen_conventions_scale(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle);
TVM_DLL int32_t tvmgen_conventions_smooth(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle);
TVM_DLL int32_t tvmgen_conventions_gather(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle);
TVM_DLL int32_t tvmgen_conventions_move(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle);
TVM_DLL int32_t tvmgen_conventions_kinds(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle);
TVM_DLL int32_t tvmgen_conventions_launch(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle);

/* What is the same for every tensor of two times three elements. */
static const char *fault_of(const DLTensor *tensor)
{
	if (tensor->device.device_type != kDLCPU || tensor->device.device_id != 0) {
		return "Assert fail: device_type == 1";
	}
	if (tensor->ndim != 2 || tensor->shape[0] != 2 || tensor->shape[1] != 3) {
		return "Assert fail: shape";
	}
	if (tensor->dtype.code != kDLInt || tensor->dtype.bits != 32 || tensor->dtype.lanes != 1) {
		return "Assert fail: dtype";
	}
	if (tensor->strides != NULL || tensor->byte_offset != 0) {
		return "Assert fail: compact";
	}
	return NULL;
}

static int32_t failed(const char *fault)
{
	TVMAPISetLastError(fault);
	return -1;
}

/* What comes with every call. */
static const char *fault_of_call(const int32_t *codes, int32_t count, const char *wanted, const int32_t *ret_code,
				 const void *resource_handle)
{
	for (int32_t i = 0; i < count; i++) {
		if (codes[i] != wanted[i] - '0') {
			return "Assert fail: type_codes";
		}
	}
	if (wanted[count] != '\0') {
		return "Assert fail: num_args";
	}
	return resource_handle != NULL ? "Assert fail: resource_handle"
	       : *ret_code != kTVMNullptr ? "Assert fail: ret_code"
					  : NULL;
}

int32_t tvmgen_conventions_scale(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle)
{
	TVMValue *values = args;
	const char *fault = fault_of_call(type_codes, num_args, "700207", ret_code, resource_handle);

	(void)ret;
	if (fault != NULL) {
		return failed(fault);
	}

	const DLTensor *x = values[0].v_handle;
	const DLTensor *y = values[5].v_handle;

	if (fault_of(x) != NULL || fault_of(y) != NULL || values[2].v_int64 != INT64_C(9000000000) ||
	    values[3].v_float64 != 0.5) {
		return failed("Assert fail: arguments of scale");
	}
	for (int i = 0; i < COUNT; i++) {
		const int64_t number = ((const int32_t *)x->data)[i] * values[1].v_int64 + values[2].v_int64 % 1000000007;

		((int32_t *)y->data)[i] = (int32_t)(values[4].v_int64 != 0 ? -number : number);
	}
	return 0;
}

int32_t tvmgen_conventions_smooth(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle)
{
	TVMValue *values = args;
	const char *fault = fault_of_call(type_codes, num_args, "77", ret_code, resource_handle);

	(void)ret;
	if (fault != NULL) {
		return failed(fault);
	}

	const int32_t *x = ((const DLTensor *)values[0].v_handle)->data;
	int32_t *y = ((const DLTensor *)values[1].v_handle)->data;
	int32_t *first = TVMBackendAllocWorkspace(1, 0, (uint64_t)24, 0, 32);

	if (first == NULL) {
		return -1;
	}

	int32_t *second = TVMBackendAllocWorkspace(1, 0, (uint64_t)24, 0, 32);
	int32_t *third = TVMBackendAllocWorkspace(1, 0, (uint64_t)32, 0, 32);

	if (second == NULL || third == NULL || ((uintptr_t)second & 15U) != 0U || ((uintptr_t)y & 31U) != 0U) {
		return -1;
	}
	for (int i = 0; i < COUNT; i++) {
		first[i] = x[i];
		second[i] = i > 0 ? x[i - 1] : 0;
		third[i] = i < COUNT - 1 ? x[i + 1] : 0;
	}
	/* Not the last one first. */
	if (TVMBackendFreeWorkspace(1, 0, second) != 0) {
		return -1;
	}
	for (int i = 0; i < COUNT; i++) {
		y[i] = first[i] / 2 % 100003 + third[i] / 4 + (i > 0 ? x[i - 1] : 0) % 7;
	}
	if (TVMBackendFreeWorkspace(1, 0, third) != 0 || TVMBackendFreeWorkspace(1, 0, first) != 0) {
		return -1;
	}
	/* All of it is there again. */
	first = TVMBackendAllocWorkspace(1, 0, (uint64_t)96, 0, 32);
	return first == NULL ? -1 : TVMBackendFreeWorkspace(1, 0, first);
}

int32_t tvmgen_conventions_gather(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle)
{
	TVMValue *values = args;
	const char *fault = fault_of_call(type_codes, num_args, "3777", ret_code, resource_handle);

	(void)ret;
	if (fault != NULL) {
		return failed(fault);
	}

	const int32_t *table = values[0].v_handle;
	const int32_t *x = ((const DLTensor *)values[1].v_handle)->data;
	int32_t *work = ((const DLTensor *)values[2].v_handle)->data;
	int32_t *y = ((const DLTensor *)values[3].v_handle)->data;

	memcpy(work, x, COUNT * sizeof(*work));
	for (int i = 0; i < COUNT; i++) {
		y[i] = work[(uint32_t)table[i] % COUNT];
	}
	return 0;
}

int32_t tvmgen_conventions_move(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle)
{
	TVMValue *values = args;
	const char *fault = fault_of_call(type_codes, num_args, "773", ret_code, resource_handle);

	(void)ret;
	if (fault != NULL || values[2].v_handle == NULL) {
		return failed(fault != NULL ? fault : "Assert fail: device");
	}
	memcpy(((const DLTensor *)values[1].v_handle)->data, ((const DLTensor *)values[0].v_handle)->data, COUNT * 4);
	return 0;
}

static int32_t describe(const DLTensor *tensor)
{
	return tensor->dtype.code * 1000000 + tensor->dtype.bits * 1000 + tensor->dtype.lanes * 100 + tensor->ndim * 10 +
	       (tensor->shape == NULL);
}

int32_t tvmgen_conventions_kinds(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle)
{
	TVMValue *values = args;
	const char *fault = fault_of_call(type_codes, num_args, "77777", ret_code, resource_handle);
	int32_t *seen = ((const DLTensor *)values[4].v_handle)->data;

	(void)ret;
	for (int i = 0; i < 4; i++) {
		seen[i] = describe(values[i].v_handle);
	}
	return fault != NULL ? kTvmErrorFunctionCallInvalidArg : 0;
}

int32_t tvmgen_conventions_launch(void* args, int32_t* type_codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource_handle)
{
	TVMValue *values = args;
	const char *fault = fault_of_call(type_codes, num_args, "7073", ret_code, resource_handle);

	(void)ret;
	if (fault != NULL || values[3].v_handle == NULL) {
		return failed(fault != NULL ? fault : "Assert fail: device");
	}
	if (queued(values[3].v_handle, args)) {
		return 0;
	}
	for (int i = 0; i < COUNT; i++) {
		((int32_t *)((const DLTensor *)values[2].v_handle)->data)[i] =
			(int32_t)(((const int32_t *)((const DLTensor *)values[0].v_handle)->data)[i] * values[1].v_int64);
	}
	return 0;
}
