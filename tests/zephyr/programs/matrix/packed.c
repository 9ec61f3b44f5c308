/* SPDX-License-Identifier: Apache-2.0 */
/* As TVM's C runtime calls operators; the results pass through its workspace. */
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"

TVM_DLL int32_t packed_mixed(void* args, int32_t* codes, int32_t num_args, void* ret, int32_t* ret_code, void* resource)
{
	TVMValue *values = args;

	(void)ret, (void)ret_code, (void)resource;
	if (num_args != 6 || codes[0] != 7 || codes[2] != 0 || codes[3] != 2 || codes[5] != 7) {
		return -1;
	}

	const DLTensor *x = values[0].v_handle, *w = values[1].v_handle, *y = values[4].v_handle, *z = values[5].v_handle;
	float *copy = TVMBackendAllocWorkspace(1, 0, (uint64_t)24, 2, 32);

	if (copy == NULL || x->ndim != 2 || x->shape[0] != 2 || x->shape[1] != 3 || w->dtype.code != kDLFloat) {
		return -1;
	}
	for (int i = 0; i < 6; i++) {
		copy[i] = ((const float *)w->data)[i] * (float)values[3].v_float64;
		((int32_t *)y->data)[i] = ((const int32_t *)x->data)[i] * (int32_t)values[2].v_int64 + 7;
	}
	for (int i = 0; i < 6; i++) {
		((float *)z->data)[i] = copy[i] + 0.25f;
	}
	return TVMBackendFreeWorkspace(1, 0, copy);
}
