/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief An emulated accelerator: integer matrix kernels on a thread of its own.
 *
 * It is a device of the class in accelerator.h, bound to devicetree nodes that are compatible with
 * `opwest,npu-emul`; on hosts npu_emul_host.h defines devices. Its program (made by
 * drivers/npu_emul/make_program.py) lists the kernels that it offers, each under a number, with
 * how each one scales its result:
 *
 *     scaled = (sum * multiplier + (1 << (shift - 1))) >> shift     with no rounding where shift is 0
 *     y      = min(max(scaled + output_zero, least), most)
 *
 * in 64-bit integers, with a shift that rounds towards minus infinity.
 *
 * Operators enqueue jobs and return. Jobs run one after another in that order. A job takes the
 * device's latency; its outputs hold garbage from its start on, and its inputs are read at its end:
 * a program that uses a buffer while the device does gets wrong numbers every time. All arguments
 * are copied; the tensors stay where they are until opwest_accelerator_sync() or
 * opwest_npu_emul_finish() said 0.
 */
#ifndef OPWEST_NPU_EMUL_H_
#define OPWEST_NPU_EMUL_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/accelerator.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The shape of a convolution. Tensors are height, width, channels; weights outputs, height, width,
 * channels.
 */
struct opwest_npu_emul_conv2d_shape {
	uint16_t height;
	uint16_t width;
	uint16_t channels_in;
	uint16_t channels_out;
	uint16_t kernel_height;
	uint16_t kernel_width;
	/** In both directions, 1 at least. */
	uint16_t stride;
	/** Rows and columns of zeros on each of the four sides. */
	uint16_t padding;
};

/**
 * @brief Enqueue `y[r][o] = scaled(bias[o] + sum over i of (x[r][i] - input_zero) *
 * weights[o][i])`.
 *
 * Without a bias this is the product of two matrices, the second one transposed.
 *
 * @param dev     The device, owned by the caller.
 * @param kernel  The kernel's number in the device's program.
 * @param x       rows x inputs numbers.
 * @param weights outputs x inputs numbers.
 * @param bias    One number per output, or NULL.
 * @param y       rows x outputs numbers; overlaps nothing else.
 * @param rows    1 at least.
 * @param inputs  1 at least.
 * @param outputs 1 at least.
 *
 * @retval 0        It is in the queue.
 * @retval -EPERM   The device is not active, or nobody owns it.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, a size is 0 or too large, or y overlaps an argument.
 * @retval -EBUSY   The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_npu_emul_dense(const struct device *dev, uint16_t kernel, const int8_t *x,
			  const int8_t *weights, const int32_t *bias, int8_t *y, uint16_t rows,
			  uint16_t inputs, uint16_t outputs);

/**
 * @brief Enqueue a convolution of one image, summed and scaled as opwest_npu_emul_dense() does.
 *
 * Rows of the result: (height + 2 * padding - kernel_height) / stride + 1, rounded down; columns
 * alike.
 *
 * @param dev     The device, owned by the caller.
 * @param kernel  The kernel's number in the device's program.
 * @param x       The image.
 * @param weights The weights.
 * @param bias    One number per channel of the result, or NULL.
 * @param y       The result; overlaps nothing else.
 * @param shape   The shape; copied.
 *
 * @retval 0        It is in the queue.
 * @retval -EPERM   The device is not active, or nobody owns it.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, the shape makes no result or is too large, or y overlaps.
 * @retval -EBUSY   The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_npu_emul_conv2d(const struct device *dev, uint16_t kernel, const int8_t *x,
			   const int8_t *weights, const int32_t *bias, int8_t *y,
			   const struct opwest_npu_emul_conv2d_shape *shape);

/**
 * @brief Enqueue `y[i] = scaled((a[i] - input_zero) + (b[i] - input_zero))`.
 *
 * @param dev    The device, owned by the caller.
 * @param kernel The kernel's number in the device's program.
 * @param a      count numbers.
 * @param b      count numbers.
 * @param y      count numbers; a or b itself, or overlaps neither.
 * @param count  1 at least.
 *
 * @retval 0        It is in the queue.
 * @retval -EPERM   The device is not active, or nobody owns it.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, the count is 0 or too large, or y overlaps in part.
 * @retval -EBUSY   The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_npu_emul_add(const struct device *dev, uint16_t kernel, const int8_t *a,
			const int8_t *b, int8_t *y, uint32_t count);

/**
 * @brief Enqueue `y[i] = scaled(max(x[i] - input_zero, 0))`.
 *
 * @param dev    The device, owned by the caller.
 * @param kernel The kernel's number in the device's program.
 * @param x      count numbers.
 * @param y      count numbers; x itself, or does not overlap it.
 * @param count  1 at least.
 *
 * @retval 0        It is in the queue.
 * @retval -EPERM   The device is not active, or nobody owns it.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, the count is 0 or too large, or y overlaps in part.
 * @retval -EBUSY   The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_npu_emul_relu(const struct device *dev, uint16_t kernel, const int8_t *x, int8_t *y,
			 uint32_t count);

/**
 * @brief Wait for what was just enqueued, and for all before it: makes an operator synchronous.
 *
 * `return opwest_npu_emul_finish(dev, opwest_npu_emul_relu(dev, ...), 1000);`
 *
 * @param dev        The device, owned by the caller.
 * @param enqueued   What the enqueuing function returned; a failure is passed on without waiting.
 * @param timeout_ms How long, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0          All jobs are done.
 * @retval -ETIMEDOUT Some job is unfinished, and the device may still write.
 * @return Another negative errno: `enqueued`, or that of the first job that failed
 */
int opwest_npu_emul_finish(const struct device *dev, int enqueued, int32_t timeout_ms);

/** Where a fault can be injected, and what is counted. */
enum opwest_npu_emul_point {
	/**
	 * The hooks. activate and open fail before they do anything; the others have done their
	 * work.
	 */
	OPWEST_NPU_EMUL_ACTIVATE,
	OPWEST_NPU_EMUL_OPEN,
	OPWEST_NPU_EMUL_SYNC,
	OPWEST_NPU_EMUL_CLOSE,
	OPWEST_NPU_EMUL_DEACTIVATE,
	/** A call of one of the functions that enqueue; nothing is enqueued. */
	OPWEST_NPU_EMUL_ENQUEUE,
	/**
	 * A job: it takes its time, leaves garbage in its outputs, and sync() returns its error.
	 */
	OPWEST_NPU_EMUL_JOB,
	/** How many there are. */
	OPWEST_NPU_EMUL_POINTS,
};

/** What a device did since it was made, or since opwest_npu_emul_reset(). */
struct opwest_npu_emul_counts {
	/** Calls of each hook and of functions that enqueue; jobs that started. */
	uint32_t calls[OPWEST_NPU_EMUL_POINTS];
	/** Those of them that returned 0; jobs that ended well. */
	uint32_t succeeded[OPWEST_NPU_EMUL_POINTS];
	/** Jobs that close() or deactivate() ended, started or not. */
	uint32_t aborted;
};

/**
 * @brief Make one call, or one job, of a device fail.
 *
 * One fault per point waits at a time; it happens once. A device may have several at several
 * points.
 *
 * @param dev   The device.
 * @param point Which kind of call.
 * @param after How many of that kind go well before.
 * @param error What it returns, negative; 0 removes a fault that has not happened.
 *
 * @retval 0       Done.
 * @retval -EINVAL The error is positive, or there is no such point.
 */
int opwest_npu_emul_inject(const struct device *dev, enum opwest_npu_emul_point point,
			   uint32_t after, int error);

/**
 * @brief Make one job of a device run until close() or deactivate() ends it.
 *
 * Takes the place of a fault at OPWEST_NPU_EMUL_JOB.
 *
 * @param dev   The device.
 * @param after How many jobs go well before.
 */
void opwest_npu_emul_hang(const struct device *dev, uint32_t after);

/**
 * @brief Tell what a device did.
 *
 * @param dev    The device.
 * @param counts Filled in.
 */
void opwest_npu_emul_count(const struct device *dev, struct opwest_npu_emul_counts *counts);

/**
 * @brief Count from 0 again, and remove the faults that have not happened.
 *
 * @param dev The device.
 */
void opwest_npu_emul_reset(const struct device *dev);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_NPU_EMUL_H_ */
