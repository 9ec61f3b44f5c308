/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of MLIR: descriptors by pointer, scalars by value. */
#include <opwest/memref.h>
#include <stdint.h>

int32_t _mlir_ciface_memref_mixed(struct opwest_memref_2 *x, struct opwest_memref_2 *w, int32_t by, float gain,
				  struct opwest_memref_2 *y, struct opwest_memref_2 *z)
{
	if (x->sizes[0] != 2 || x->sizes[1] != 3 || x->strides[0] != 3 || x->strides[1] != 1) {
		return -1;
	}
	for (intptr_t i = 0; i < 6; i++) {
		((int32_t *)y->aligned)[y->offset + i] = ((const int32_t *)x->aligned)[x->offset + i] * by + 7;
		((float *)z->aligned)[z->offset + i] = ((const float *)w->aligned)[w->offset + i] * gain + 0.25f;
	}
	return 0;
}
