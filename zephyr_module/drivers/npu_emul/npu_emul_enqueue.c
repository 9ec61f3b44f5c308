/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for operators: they check the arguments and enqueue a job. */
#include <errno.h>
#include <stddef.h>

#include "npu_emul_internal.h"

/* More products than this, each below 2^15, could overflow a sum of 32 bits. */
#define MAX_TAPS 65535U

/* The largest size of a tensor: that of a signed 32-bit index. */
#define MAX_BYTES INT32_MAX

static bool overlaps(const int8_t *a, uint32_t a_size, const int8_t *b, uint32_t b_size)
{
	const uintptr_t first = (uintptr_t)a;
	const uintptr_t second = (uintptr_t)b;

	return first < second ? second - first < a_size : first - second < b_size;
}

/* Rows or columns of a result; 0 when the window does not fit. */
static uint32_t steps(uint32_t size, uint32_t padding, uint32_t window, uint32_t stride)
{
	const uint32_t padded = size + 2 * padding;

	return padded < window ? 0 : (padded - window) / stride + 1;
}

/* The number of bytes of a tensor; 0 when it is too large. */
static uint32_t volume(uint32_t a, uint32_t b, uint32_t c)
{
	const uint64_t area = (uint64_t)a * b;

	return c == 0 || area > MAX_BYTES || area * c > MAX_BYTES ? 0 : (uint32_t)(area * c);
}

static int check_matrix(struct opwest_npu_emul_job *job)
{
	const struct opwest_npu_emul_conv2d_shape *const shape = &job->shape;
	const uint32_t taps = volume(shape->kernel_height, shape->kernel_width, shape->channels_in);

	if (job->x == NULL || job->w == NULL || job->y == NULL || shape->stride == 0 || taps == 0 ||
	    taps > MAX_TAPS) {
		return -EINVAL;
	}
	job->x_size = volume(shape->height, shape->width, shape->channels_in);
	job->w_size = volume(taps, shape->channels_out, 1);
	job->y_size =
		volume(steps(shape->height, shape->padding, shape->kernel_height, shape->stride),
		       steps(shape->width, shape->padding, shape->kernel_width, shape->stride),
		       shape->channels_out);
	if (job->x_size == 0 || job->w_size == 0 || job->y_size == 0 ||
	    overlaps(job->y, job->y_size, job->x, job->x_size) ||
	    overlaps(job->y, job->y_size, job->w, job->w_size)) {
		return -EINVAL;
	}
	return 0;
}

static int check_elements(const struct opwest_npu_emul_job *job)
{
	const uint32_t count = job->y_size;

	if (job->x == NULL || job->w == NULL || job->y == NULL || count == 0 || count > MAX_BYTES ||
	    (job->y != job->x && overlaps(job->y, count, job->x, count)) ||
	    (job->y != job->w && overlaps(job->y, count, job->w, count))) {
		return -EINVAL;
	}
	return 0;
}

static int enqueue(const struct device *dev, uint16_t kernel, struct opwest_npu_emul_job *job)
{
	const bool matrix =
		job->kind == OPWEST_NPU_EMUL_DENSE || job->kind == OPWEST_NPU_EMUL_CONV2D;
	int rc = opwest_npu_emul_begin(dev, OPWEST_NPU_EMUL_ENQUEUE);

	if (rc == 0) {
		rc = matrix ? check_matrix(job) : check_elements(job);
	}
	if (rc == 0) {
		rc = opwest_npu_emul_put(dev, kernel, job);
	}
	return opwest_npu_emul_end(dev, OPWEST_NPU_EMUL_ENQUEUE, rc);
}

int opwest_npu_emul_dense(const struct device *dev, uint16_t kernel, const int8_t *x,
			  const int8_t *weights, const int32_t *bias, int8_t *y, uint16_t rows,
			  uint16_t inputs, uint16_t outputs)
{
	struct opwest_npu_emul_job job = {
		.kind = OPWEST_NPU_EMUL_DENSE,
		.x = x,
		.w = weights,
		.bias = bias,
		.y = y,
		.shape = {.height = rows,
			  .width = 1,
			  .channels_in = inputs,
			  .channels_out = outputs,
			  .kernel_height = 1,
			  .kernel_width = 1,
			  .stride = 1},
	};

	return enqueue(dev, kernel, &job);
}

int opwest_npu_emul_conv2d(const struct device *dev, uint16_t kernel, const int8_t *x,
			   const int8_t *weights, const int32_t *bias, int8_t *y,
			   const struct opwest_npu_emul_conv2d_shape *shape)
{
	struct opwest_npu_emul_job job = {
		.kind = OPWEST_NPU_EMUL_CONV2D,
		.x = x,
		.w = weights,
		.bias = bias,
		.y = y,
	};

	/* A shape of zeros fails the check. */
	if (shape != NULL) {
		job.shape = *shape;
	}
	return enqueue(dev, kernel, &job);
}

int opwest_npu_emul_add(const struct device *dev, uint16_t kernel, const int8_t *a, const int8_t *b,
			int8_t *y, uint32_t count)
{
	struct opwest_npu_emul_job job = {
		.kind = OPWEST_NPU_EMUL_ADD,
		.x = a,
		.w = b,
		.y = y,
		.y_size = count,
	};

	return enqueue(dev, kernel, &job);
}

int opwest_npu_emul_relu(const struct device *dev, uint16_t kernel, const int8_t *x, int8_t *y,
			 uint32_t count)
{
	struct opwest_npu_emul_job job = {
		.kind = OPWEST_NPU_EMUL_RELU,
		.x = x,
		.w = x,
		.y = y,
		.y_size = count,
	};

	return enqueue(dev, kernel, &job);
}
