/* SPDX-License-Identifier: Apache-2.0 */
/* As tvm-ffi calls operators; the results pass through its workspace. */
#include <opwest/tvm_ffi.h>
#include "tvm/runtime/c_backend_api.h"

int32_t ffi_mixed(void *self, void *args, int32_t num_args, void *result)
{
	const TVMFFIAny *any = args;

	(void)self, (void)result;
	if (num_args != 6 || any[0].type_index != 7 || any[2].type_index != 1 || any[3].type_index != 3) {
		return -1;
	}

	const DLTensor *x = any[0].v_ptr, *w = any[1].v_ptr, *y = any[4].v_ptr, *z = any[5].v_ptr;
	float *copy = TVMBackendAllocWorkspace(1, 0, 24, 2, 32);

	if (copy == NULL || x->strides[0] != 3 || x->strides[1] != 1 || ((uintptr_t)z->data & 63U) != 0U) {
		return -1;
	}
	for (int i = 0; i < 6; i++) {
		copy[i] = ((const float *)w->data)[i] * (float)any[3].v_float64;
		((int32_t *)y->data)[i] = ((const int32_t *)x->data)[i] * (int32_t)any[2].v_int64 + 7;
	}
	for (int i = 0; i < 6; i++) {
		((float *)z->data)[i] = copy[i] + 0.25f;
	}
	return TVMBackendFreeWorkspace(1, 0, copy);
}
