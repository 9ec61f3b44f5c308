/* SPDX-License-Identifier: Apache-2.0 */
/* Operators as Halide compiles pipelines: buffers with the innermost dimension first, checks, memory. */
#include <opwest/halide_buffer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int blur(struct halide_buffer_t *x, uint8_t by, double real, struct halide_buffer_t *on, struct halide_buffer_t *bits,
	 struct halide_buffer_t *none, struct halide_buffer_t *y);
int limited(struct halide_buffer_t *x, int32_t limit, struct halide_buffer_t *y);

static bool is_type(const struct halide_buffer_t *buffer, int code, int bits, int dimensions)
{
	return buffer->type.code == code && buffer->type.bits == bits && buffer->type.lanes == 1 &&
	       buffer->dimensions == dimensions && buffer->host != NULL && buffer->device == 0 &&
	       buffer->device_interface == NULL && buffer->flags == 0 && (buffer->dim == NULL) == (dimensions == 0);
}

static bool is_dimension(const struct halide_dimension_t *dim, int32_t extent, int32_t stride)
{
	return dim->min == 0 && dim->extent == extent && dim->stride == stride && dim->flags == 0;
}

int blur(struct halide_buffer_t *x, uint8_t by, double real, struct halide_buffer_t *on, struct halide_buffer_t *bits,
	 struct halide_buffer_t *none, struct halide_buffer_t *y)
{
	if (!is_type(x, 0, 32, 2) || !is_type(y, 0, 32, 2)) {
		return halide_error_bad_type(NULL, "blur", 0, 0);
	}
	if (!is_type(on, 1, 1, 1) || !is_type(bits, 2, 16, 2) || !is_type(none, 2, 64, 0)) {
		return halide_error_bad_dimensions(NULL, "blur", 0, 0);
	}
	if (!is_dimension(&x->dim[0], 3, 1) || !is_dimension(&x->dim[1], 2, 3)) {
		return halide_error_constraint_violated(NULL, "x.stride.0", 0, "1", 1);
	}

	int32_t *copy = halide_malloc(NULL, 24);

	if (copy == NULL) {
		return halide_error_out_of_memory(NULL);
	}
	/* Any double is a valid argument; the conversion of a large one is not defined. */
	const int32_t scaled = real > -1e6 && real < 1e6 ? (int32_t)(real * 4) : 0;

	memcpy(copy, x->host, 24);
	y->flags |= 1; /* halide_buffer_flag_host_dirty */
	for (int32_t row = 0; row < y->dim[1].extent; row++) {
		for (int32_t column = 0; column < y->dim[0].extent; column++) {
			const int32_t at = row * y->dim[1].stride + column;

			((int32_t *)(void *)y->host)[at] = copy[at] / 2 + by + scaled;
		}
	}
	halide_free(NULL, copy);
	return 0;
}

int limited(struct halide_buffer_t *x, int32_t limit, struct halide_buffer_t *y)
{
	if (limit < 0) {
		return halide_error_param_too_small_i64(NULL, "limit", limit, 0);
	}
	if (limit > 100) {
		return halide_malloc(NULL, 1) == NULL ? halide_error_out_of_memory(NULL) : 0;
	}
	memcpy(y->host, x->host, 24);
	return 0;
}
