/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of tvm-ffi, as TVM's C output has them: headers, visibility, the library's context. Written to the binary
 * interface by hand. Each checks everything that it is passed.
 */
#define TVM_EXPORTS
#include "tvm/ffi/extra/c_env_api.h"
#include "tvm/runtime/base.h"
#include "tvm/runtime/c_backend_api.h"
#include "tvm/ffi/c_api.h"
#include <stddef.h>

#include "queue.h"

#define COUNT 6

void* __tvm_ffi__library_ctx = NULL;

TVM_DLL int32_t __tvm_ffi_add(void* self_handle, void* args, int32_t num_args, void* result);
TVM_DLL int32_t __tvm_ffi_mix(void* self_handle, void* args, int32_t num_args, void* result);
TVM_DLL int32_t __tvm_ffi_launch(void* self_handle, void* args, int32_t num_args, void* result);

static int32_t raised(const char *what)
{
	const char *parts[4] = {"Mismatched ", what, NULL, " when calling an operator"};

	TVMFFIErrorSetRaisedFromCStrParts("TypeError", parts, 4);
	return -1;
}

static int32_t wrong_tensor(const TVMFFIAny *value)
{
	const DLTensor *tensor = value->v_ptr;

	return value->type_index != kTVMFFIDLTensorPtr || value->zero_padding != 0 || tensor->ndim != 2 ||
	       tensor->shape[0] != 2 || tensor->shape[1] != 3 || tensor->strides[0] != 3 || tensor->strides[1] != 1 ||
	       tensor->dtype.code != kDLInt || tensor->dtype.bits != 32 || tensor->dtype.lanes != 1 ||
	       tensor->device.device_type != kDLCPU || tensor->byte_offset != 0 || ((uintptr_t)tensor->data & 63U) != 0U;
}

/* Beside a pointer of 32 bits there are zeros. */
static int32_t wrong_padding(const TVMFFIAny *value)
{
	return sizeof(void *) == 4U && (value->v_uint64 >> 32) != 0U && (uint32_t)value->v_uint64 != 0U;
}

int32_t __tvm_ffi_add(void* self_handle, void* args, int32_t num_args, void* result)
{
	const TVMFFIAny *values = args;
	const TVMFFIAny *returned = result;

	if (self_handle != NULL || num_args != 3 || returned->type_index != kTVMFFINone) {
		return raised("call");
	}
	for (int i = 0; i < 3; i++) {
		if (wrong_tensor(&values[i]) || wrong_padding(&values[i])) {
			return raised("tensor");
		}
	}
	for (int i = 0; i < COUNT; i++) {
		((int32_t *)((DLTensor *)values[2].v_ptr)->data)[i] =
			((const int32_t *)((const DLTensor *)values[0].v_ptr)->data)[i] / 2 +
			((const int32_t *)((const DLTensor *)values[1].v_ptr)->data)[i] / 2;
	}
	return 0;
}

int32_t __tvm_ffi_mix(void* self_handle, void* args, int32_t num_args, void* result)
{
	const TVMFFIAny *values = args;

	(void)result;
	if (self_handle != NULL || num_args != 7 || wrong_tensor(&values[0]) || wrong_tensor(&values[6])) {
		return raised("call");
	}
	if (values[1].type_index != kTVMFFIInt || values[1].v_int64 != 60000 ||
	    values[2].type_index != kTVMFFIFloat || values[2].v_float64 != 0.25 ||
	    values[3].type_index != kTVMFFIBool || values[3].v_int64 != 0 || values[4].type_index != kTVMFFIOpaquePtr) {
		return raised("scalar");
	}

	const DLTensor *on = values[5].v_ptr;

	if (on->dtype.code != kDLBool || on->dtype.bits != 8 || on->ndim != 1 || on->strides[0] != 1) {
		return raised("bool");
	}

	/* Two units of 64 bytes. */
	int32_t *first = TVMBackendAllocWorkspace(1, 0, (uint64_t)COUNT * 4, 0, 32);
	int32_t *second = TVMBackendAllocWorkspace(1, 0, (uint64_t)64, 0, 32);

	if (first == NULL || second == NULL || (((uintptr_t)first | (uintptr_t)second) & 63U) != 0U) {
		return raised("workspace");
	}
	for (int i = 0; i < COUNT; i++) {
		first[i] = ((const int32_t *)((const DLTensor *)values[0].v_ptr)->data)[i] % 1000;
		second[i] = ((const int32_t *)values[4].v_ptr)[i];
	}
	for (int i = 0; i < COUNT; i++) {
		((int32_t *)((const DLTensor *)values[6].v_ptr)->data)[i] =
			first[(uint32_t)second[i] % COUNT] * 10 + (((const uint8_t *)on->data)[0] != 0 ? 1 : 0);
	}
	return TVMBackendFreeWorkspace(1, 0, second) != 0 || TVMBackendFreeWorkspace(1, 0, first) != 0 ? -1 : 0;
}

int32_t __tvm_ffi_launch(void* self_handle, void* args, int32_t num_args, void* result)
{
	const TVMFFIAny *values = args;

	(void)result;
	if (self_handle != NULL || num_args != 4 || wrong_tensor(&values[0]) || values[1].type_index != kTVMFFIInt ||
	    wrong_tensor(&values[2]) || values[3].type_index != kTVMFFIOpaquePtr || values[3].v_ptr == NULL) {
		return raised("launch");
	}
	if (queued(values[3].v_ptr, args)) {
		return 0;
	}
	for (int i = 0; i < COUNT; i++) {
		((int32_t *)((const DLTensor *)values[2].v_ptr)->data)[i] =
			(int32_t)(((const int32_t *)((const DLTensor *)values[0].v_ptr)->data)[i] * values[1].v_int64);
	}
	return 0;
}
