/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of the generated model `conventions` that return values or have the conventions of Halide, of MLIR and of CasADi: see
 * packed_operators.c.
 */
#include <errno.h>
#include <string.h>

#include <conventions.h>
#include <opwest/halide_buffer.h>
#include <opwest/memref.h>

#include "conventions_internal.h"
#include "packed.h"

static void check_data(const void *data, size_t index)
{
	const struct opwest_tensor *const arg = &called->args[index];

	CHECK(((uintptr_t)data & (OPWEST_TENSOR_ALIGN(arg->flags) - 1U)) == 0U);
	CHECK(given == NULL || data == given[index].as.out);
}

static void write(void *data, size_t index)
{
	if (called->args[index].direction != OPWEST_IN) {
		memset(data, (int)take(input, 1), called->args[index].size);
	}
}

static void check_integer(int64_t value, size_t index)
{
	CHECK(given == NULL || value == given[index].as.integer);
}

static void check_buffer(const struct halide_buffer_t *buffer, size_t index)
{
	static const uint8_t codes[] = {[OPWEST_BOOL] = OPWEST_HALIDE_UINT,
					[OPWEST_INT32] = OPWEST_HALIDE_INT,
					[OPWEST_FLOAT16] = OPWEST_HALIDE_FLOAT,
					[OPWEST_FLOAT64] = OPWEST_HALIDE_FLOAT};
	const struct opwest_tensor *const arg = &called->args[index];
	int32_t stride = 1;

	CHECK(buffer->device == 0U && buffer->device_interface == NULL && buffer->flags == 0U);
	CHECK(buffer->type.code == codes[arg->dtype] && buffer->type.lanes == 1U && buffer->padding == NULL);
	CHECK(buffer->type.bits == (arg->dtype == OPWEST_BOOL ? 1U : opwest_dtype_size(arg->dtype) * 8U));
	CHECK(buffer->dimensions == arg->rank);
	for (int32_t i = 0; i < buffer->dimensions; i++) {
		const struct halide_dimension_t *const dim = &buffer->dim[i];

		CHECK(dim->min == 0 && dim->flags == 0U && dim->stride == stride);
		CHECK((uint32_t)dim->extent == arg->shape[arg->rank - 1 - i]);
		stride *= dim->extent;
	}
	check_data(buffer->host, index);
	write(buffer->host, index);
}

/* Descriptors of all ranks begin in the same way. */
static void *check_memref(const void *descriptor, const intptr_t *sizes, const intptr_t *strides, size_t index)
{
	const struct opwest_memref_0 *const memref = descriptor;
	const struct opwest_tensor *const arg = &called->args[index];
	int64_t stride = 1;

	CHECK(memref->allocated == memref->aligned && memref->offset == 0);
	for (size_t i = arg->rank; i-- > 0U;) {
		CHECK(sizes[i] == (int64_t)arg->shape[i] && strides[i] == stride);
		stride *= sizes[i];
	}
	check_data(memref->aligned, index);
	write(memref->aligned, index);
	return memref->aligned;
}

static int32_t converted(int32_t code)
{
	return code == -11 ? -ENOMEM : code < 0 && code > INT32_MIN ? -code : code;
}

/* Return whether the memory was exhausted. */
static bool allocate_for_halide(void)
{
	const struct opwest_tvm_workspace *const note = opwest_port_tvm_current();
	const size_t size = take(input, 1);
	uint8_t *const memory = halide_malloc(NULL, size);

	if (memory == NULL) {
		return true;
	}
	CHECK(((uintptr_t)memory & (((uintptr_t)1 << note->shift) - 1U)) == 0U);
	CHECK(memory - 8 >= note->memory);
	CHECK(memory + size + 8 <= note->memory + ((size_t)note->units << note->shift));
	memset(memory - 8, 0x5a, size + 16U);
	halide_free(NULL, memory);
	return false;
}

uint8_t conventions__label(const int32_t *x, int16_t limit)
{
	is_called(11);
	check_data(x, 0);
	check_integer(limit, 1);
	entered++;
	returned[0] = (uint8_t)take(input, 1);
	returned_size = 1U;
	return returned[0];
}

double conventions__mean(const int32_t *x)
{
	const uint64_t bits = take(input, 8);
	double value;

	is_called(12);
	check_data(x, 0);
	entered++;
	memcpy(&value, &bits, sizeof(value));
	memcpy(returned, &value, sizeof(value));
	returned_size = sizeof(value);
	return value;
}

int32_t conventions__blur(struct halide_buffer_t *x, uint8_t by, double real, struct halide_buffer_t *on,
			  struct halide_buffer_t *bits, struct halide_buffer_t *none, struct halide_buffer_t *y)
{
	struct halide_buffer_t *const buffers[] = {x, NULL, NULL, on, bits, none, y};
	bool failed;

	is_called(13);
	for (size_t i = 0; i < 7U; i++) {
		if (buffers[i] != NULL) {
			check_buffer(buffers[i], i);
		}
	}
	check_integer(by, 1);
	CHECK(given == NULL || memcmp(&real, &given[2].as.real, sizeof(real)) == 0);

	const bool exhausted = allocate_for_halide();
	const int32_t code = decide(&failed);

	expected = converted(code) != 0 && (failed || exhausted) ? -ENOMEM : converted(code);
	return code;
}

int32_t conventions__limited(struct halide_buffer_t *x, int32_t limit, struct halide_buffer_t *y)
{
	bool failed;

	is_called(14);
	check_buffer(x, 0);
	check_integer(limit, 1);
	check_buffer(y, 2);

	const int32_t code = decide(&failed);

	expected = converted(code);
	return code;
}

void conventions___mlir_ciface_turn(void *x, int8_t by, void *y)
{
	const struct opwest_memref_2 *const from = x;
	const struct opwest_memref_2 *const to = y;

	is_called(15);
	(void)check_memref(x, from->sizes, from->strides, 0);
	check_integer(by, 1);
	(void)check_memref(y, to->sizes, to->strides, 2);
	entered++;
}

int32_t conventions___mlir_ciface_shift(void *x, void *y)
{
	const struct opwest_memref_1 *const to = y;
	bool failed;

	is_called(16);
	(void)check_memref(x, NULL, NULL, 0);
	(void)check_memref(y, to->sizes, to->strides, 1);
	expected = decide(&failed);
	return expected;
}

int64_t conventions___mlir_ciface_sum(void *x)
{
	const struct opwest_memref_2 *const from = x;
	const int64_t value = (int64_t)take(input, 8);

	is_called(17);
	(void)check_memref(x, from->sizes, from->strides, 0);
	entered++;
	memcpy(returned, &value, sizeof(value));
	returned_size = sizeof(value);
	return value;
}

int32_t conventions__cross(const int32_t **in, void **out, uint8_t *context, int64_t *work, int8_t by)
{
	const void *const tensors[] = {in[0], in[1], out[0], out[1], out[2], work};
	bool failed;

	is_called(18);
	CHECK(in[2] == NULL && in[3] == NULL && out[3] == NULL && context == NULL);
	for (size_t i = 0; i < 6U; i++) {
		check_data(tensors[i], i);
	}
	for (size_t i = 0; i < 3U; i++) {
		write(out[i], i + 2U);
	}
	write(work, 5);
	check_integer(by, 6);
	in[2] = in[0];
	out[3] = out[1];
	expected = decide(&failed);
	return expected;
}
