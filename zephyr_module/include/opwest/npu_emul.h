/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief An emulated accelerator: integer matrix kernels on a separate thread.
 *
 * It is a device of the class in accelerator.h, bound to devicetree nodes that are compatible with
 * `opwest,npu-emul`; on hosts npu_emul_host.h defines devices. Its program (written by
 * drivers/npu_emul/make_program.py) lists its kernels, each with a number and the scaling
 * of its result:
 *
 *     scaled = (sum * multiplier + (1 << (shift - 1))) >> shift     (no rounding if shift is 0)
 *     y      = min(max(scaled + output_zero, least), most)
 *
 * in 64-bit integers, with a shift that rounds towards minus infinity.
 *
 * Operators enqueue jobs and return. Jobs run one after another in that order. A job takes the
 * latency of the device. It fills its outputs with garbage at its start and reads its inputs at its
 * end, so a program that uses a buffer during a job always has wrong results. All arguments are
 * copied; the tensors must exist until opwest_accelerator_sync() or opwest_npu_emul_finish()
 * returns 0.
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
 * The shape of a convolution: height, width, channels; of weights: outputs, height, width,
 * channels.
 */
struct opwest_npu_emul_conv2d_shape {
	uint16_t height;
	uint16_t width;
	uint16_t channels_in;
	uint16_t channels_out;
	uint16_t kernel_height;
	uint16_t kernel_width;
	/** In both directions, at least 1. */
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
 * @param y       rows x outputs numbers; must not overlap another argument.
 * @param rows    At least 1.
 * @param inputs  At least 1.
 * @param outputs At least 1.
 *
 * @retval 0        The job is in the queue.
 * @retval -EPERM   The device is not active, or has no owner.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, a size is 0 or too large, or y overlaps an argument.
 * @retval -EAGAIN  The queue stayed full for the device's queue-timeout-ms.
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
 * @param y       The result; must not overlap another argument.
 * @param shape   The shape; copied.
 *
 * @retval 0        The job is in the queue.
 * @retval -EPERM   The device is not active, or has no owner.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, the shape has no result or is too large, or y overlaps.
 * @retval -EAGAIN  The queue stayed full for the device's queue-timeout-ms.
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
 * @param y      count numbers; equal to a or b, or without overlap.
 * @param count  At least 1.
 *
 * @retval 0        The job is in the queue.
 * @retval -EPERM   The device is not active, or has no owner.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, the count is 0 or too large, or y overlaps in part.
 * @retval -EAGAIN  The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_npu_emul_add(const struct device *dev, uint16_t kernel, const int8_t *a, const int8_t *b,
			int8_t *y, uint32_t count);

/**
 * @brief Enqueue `y[i] = scaled(max(x[i] - input_zero, 0))`.
 *
 * @param dev    The device, owned by the caller.
 * @param kernel The kernel's number in the device's program.
 * @param x      count numbers.
 * @param y      count numbers; equal to x, or without overlap.
 * @param count  At least 1.
 *
 * @retval 0        The job is in the queue.
 * @retval -EPERM   The device is not active, or has no owner.
 * @retval -ENOTSUP The device's program has no such kernel.
 * @retval -EINVAL  A pointer is NULL, the count is 0 or too large, or y overlaps in part.
 * @retval -EAGAIN  The queue stayed full for the device's queue-timeout-ms.
 */
int opwest_npu_emul_relu(const struct device *dev, uint16_t kernel, const int8_t *x, int8_t *y,
			 uint32_t count);

/**
 * @brief Wait for the last job and all earlier ones, for synchronous operators.
 *
 * `return opwest_npu_emul_finish(dev, opwest_npu_emul_relu(dev, ...), 1000);`
 *
 * @param dev        The device, owned by the caller.
 * @param enqueued   The return value of the enqueuing function; a failure is returned without a
 *                   wait.
 * @param timeout_ms The longest wait, milliseconds, or OPWEST_FOREVER.
 *
 * @retval 0          All jobs are done.
 * @retval -ETIMEDOUT Some job is unfinished, and the device may still write.
 * @return Another negative errno: `enqueued`, or that of the first job that failed
 */
int opwest_npu_emul_finish(const struct device *dev, int enqueued, int32_t timeout_ms);

/** The points of injected faults and of counts. */
enum opwest_npu_emul_point {
	/** The hooks. sync, close and deactivate fail at their end, the others at their start. */
	OPWEST_NPU_EMUL_ACTIVATE,
	OPWEST_NPU_EMUL_CHECK,
	OPWEST_NPU_EMUL_OPEN,
	OPWEST_NPU_EMUL_LOAD,
	OPWEST_NPU_EMUL_SYNC,
	OPWEST_NPU_EMUL_CLOSE,
	OPWEST_NPU_EMUL_DEACTIVATE,
	/** A call of one of the functions that enqueue; no job is enqueued. */
	OPWEST_NPU_EMUL_ENQUEUE,
	/**
	 * A job: it takes its latency, leaves garbage in its outputs, and sync() returns its error.
	 */
	OPWEST_NPU_EMUL_JOB,
	/** The number of points. */
	OPWEST_NPU_EMUL_POINTS,
};

/** The counts of a device since its start, or since opwest_npu_emul_reset(). */
struct opwest_npu_emul_counts {
	/** Calls of each hook and of functions that enqueue; jobs that started. */
	uint32_t calls[OPWEST_NPU_EMUL_POINTS];
	/** Calls that returned 0; jobs that succeeded. */
	uint32_t succeeded[OPWEST_NPU_EMUL_POINTS];
	/** Jobs that close() or deactivate() ended, started or not. */
	uint32_t aborted;
	/** Programs that were loaded: load() with the program that is loaded does not count. */
	uint32_t loaded;
	/** The largest number of unfinished jobs. */
	uint32_t most;
	/** Changes of the device's power (CONFIG_PM_DEVICE). */
	uint32_t resumed;
	uint32_t suspended;
};

/**
 * @brief Inject a failure of one call or one job of a device.
 *
 * Each point has at most one pending fault, which happens once.
 *
 * @param dev   The device.
 * @param point The kind of call.
 * @param after The number of calls of this kind before it.
 * @param error The return value, negative; 0 removes a pending fault.
 *
 * @retval 0       Done.
 * @retval -EINVAL The error is positive, or there is no such point.
 */
int opwest_npu_emul_inject(const struct device *dev, enum opwest_npu_emul_point point,
			   uint32_t after, int error);

/**
 * @brief Let one job of a device run until close() or deactivate() ends it.
 *
 * Replaces a fault at OPWEST_NPU_EMUL_JOB.
 *
 * @param dev   The device.
 * @param after The number of jobs before it.
 */
void opwest_npu_emul_hang(const struct device *dev, uint32_t after);

/**
 * @brief Let the job of opwest_npu_emul_hang() end, or remove the pending fault if none has
 * started.
 *
 * @param dev The device.
 */
void opwest_npu_emul_resume(const struct device *dev);

/**
 * @brief Return the counts of a device.
 *
 * @param dev    The device.
 * @param counts Filled in.
 */
void opwest_npu_emul_count(const struct device *dev, struct opwest_npu_emul_counts *counts);

/**
 * @brief Reset the counts, and remove pending faults.
 *
 * @param dev The device.
 */
void opwest_npu_emul_reset(const struct device *dev);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_NPU_EMUL_H_ */
