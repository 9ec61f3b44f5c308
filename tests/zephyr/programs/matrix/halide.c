/* SPDX-License-Identifier: Apache-2.0 */
/* As Halide compiles pipelines; the results pass through its memory. */
#include <opwest/halide_buffer.h>
#include <stddef.h>
#include <stdint.h>

int halide_mixed(struct halide_buffer_t *x, struct halide_buffer_t *w, int32_t by, float gain,
		 struct halide_buffer_t *y, struct halide_buffer_t *z)
{
	if (x->dimensions != 2 || x->dim[0].extent != 3 || x->dim[1].stride != 3 || w->type.bits != 32) {
		return halide_error_bad_dimensions(NULL, "halide_mixed", 0, 0);
	}

	float *copy = halide_malloc(NULL, 24);

	if (copy == NULL) {
		return halide_error_out_of_memory(NULL);
	}
	for (int i = 0; i < 6; i++) {
		copy[i] = ((const float *)(const void *)w->host)[i] * gain;
		((int32_t *)(void *)y->host)[i] = ((const int32_t *)(const void *)x->host)[i] * by + 7;
	}
	for (int i = 0; i < 6; i++) {
		((float *)(void *)z->host)[i] = copy[i] + 0.25f;
	}
	halide_free(NULL, copy);
	return 0;
}
