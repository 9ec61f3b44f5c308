/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with the C interface of MLIR: descriptors of memrefs by pointer, results by value. */
#include <opwest/memref.h>
#include <stddef.h>
#include <stdint.h>

void _mlir_ciface_turn(struct opwest_memref_2 *x, int8_t by, struct opwest_memref_2 *y);
int32_t _mlir_ciface_shift(struct opwest_memref_0 *x, struct opwest_memref_1 *y);
int64_t _mlir_ciface_sum(struct opwest_memref_2 *x);

static int32_t *at(const struct opwest_memref_2 *x, intptr_t i, intptr_t j)
{
	return (int32_t *)x->aligned + x->offset + i * x->strides[0] + j * x->strides[1];
}

void _mlir_ciface_turn(struct opwest_memref_2 *x, int8_t by, struct opwest_memref_2 *y)
{
	for (intptr_t i = 0; i < x->sizes[0]; i++) {
		for (intptr_t j = 0; j < x->sizes[1]; j++) {
			*at(y, j, i) = *at(x, i, j) * by;
		}
	}
}

int32_t _mlir_ciface_shift(struct opwest_memref_0 *x, struct opwest_memref_1 *y)
{
	if (x->allocated != x->aligned || y->sizes[0] != 1 || y->strides[0] != 1) {
		return -1;
	}
	*(double *)y->aligned = *(const double *)x->aligned + 0.5;
	return 0;
}

int64_t _mlir_ciface_sum(struct opwest_memref_2 *x)
{
	int64_t sum = INT64_C(1) << 40;

	for (intptr_t i = 0; i < x->sizes[0]; i++) {
		for (intptr_t j = 0; j < x->sizes[1]; j++) {
			sum += *at(x, i, j);
		}
	}
	return sum;
}
