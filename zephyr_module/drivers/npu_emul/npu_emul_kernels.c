/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic; npu_emul.h has the formulas. */
#include <stddef.h>

#include "npu_emul_internal.h"

static int8_t scaled(const struct opwest_npu_emul_kernel *kernel, int64_t sum)
{
	int64_t value = sum * kernel->multiplier;

	if (kernel->shift > 0) {
		value = (value + ((int64_t)1 << (kernel->shift - 1))) >> kernel->shift;
	}
	value += kernel->output_zero;
	if (value < kernel->least) {
		return kernel->least;
	}
	return value > kernel->most ? kernel->most : (int8_t)value;
}

/* The sum over the part of the window that is inside the image; its products fit 32 bits. */
static int32_t window(const struct opwest_npu_emul_job *job, int32_t top, int32_t left,
		      const int8_t *weights)
{
	const struct opwest_npu_emul_conv2d_shape *const shape = &job->shape;
	const int32_t channels = shape->channels_in;
	int32_t sum = 0;

	for (int32_t i = 0; i < shape->kernel_height; i++) {
		for (int32_t j = 0; j < shape->kernel_width; j++) {
			const int32_t row = top + i;
			const int32_t column = left + j;
			const int8_t *x;
			const int8_t *w;

			if (row < 0 || row >= shape->height || column < 0 ||
			    column >= shape->width) {
				continue;
			}
			x = job->x + (row * shape->width + column) * channels;
			w = weights + (i * shape->kernel_width + j) * channels;
			for (int32_t c = 0; c < channels; c++) {
				sum += (x[c] - job->kernel.input_zero) * w[c];
			}
		}
	}
	return sum;
}

static void conv2d(const struct opwest_npu_emul_job *job)
{
	const struct opwest_npu_emul_conv2d_shape *const shape = &job->shape;
	const int32_t taps = shape->kernel_height * shape->kernel_width * shape->channels_in;
	const int32_t bottom = shape->height + shape->padding - shape->kernel_height;
	const int32_t right = shape->width + shape->padding - shape->kernel_width;
	int8_t *y = job->y;

	for (int32_t top = -shape->padding; top <= bottom; top += shape->stride) {
		for (int32_t left = -shape->padding; left <= right; left += shape->stride) {
			for (int32_t o = 0; o < shape->channels_out; o++) {
				const int64_t bias = job->bias == NULL ? 0 : job->bias[o];

				*y++ = scaled(&job->kernel,
					      bias + window(job, top, left, job->w + o * taps));
			}
		}
	}
}

static void add(const struct opwest_npu_emul_job *job)
{
	const int32_t zeros = 2 * job->kernel.input_zero;

	for (uint32_t i = 0; i < job->y_size; i++) {
		job->y[i] = scaled(&job->kernel, job->x[i] + job->w[i] - zeros);
	}
}

static void relu(const struct opwest_npu_emul_job *job)
{
	for (uint32_t i = 0; i < job->y_size; i++) {
		const int32_t x = job->x[i] - job->kernel.input_zero;

		job->y[i] = scaled(&job->kernel, x > 0 ? x : 0);
	}
}

void opwest_npu_emul_compute(const struct opwest_npu_emul_job *job)
{
	switch (job->kind) {
	case OPWEST_NPU_EMUL_DENSE:
	case OPWEST_NPU_EMUL_CONV2D:
		conv2d(job);
		break;
	case OPWEST_NPU_EMUL_ADD:
		add(job);
		break;
	case OPWEST_NPU_EMUL_RELU:
		relu(job);
		break;
	}
}
