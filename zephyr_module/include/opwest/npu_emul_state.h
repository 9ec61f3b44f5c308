/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The memory of an emulated accelerator: for its driver and npu_emul_host.h, not for
 * applications.
 */
#ifndef OPWEST_NPU_EMUL_STATE_H_
#define OPWEST_NPU_EMUL_STATE_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/accelerator_context.h>
#include <opwest/npu_emul.h>
#include <opwest/port_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kinds of kernels; the numbers are those in programs. */
enum opwest_npu_emul_kind {
	OPWEST_NPU_EMUL_DENSE = 1,
	OPWEST_NPU_EMUL_CONV2D = 2,
	OPWEST_NPU_EMUL_ADD = 3,
	OPWEST_NPU_EMUL_RELU = 4,
};

/** A kernel of a program: zero points, scaling and limits. */
struct opwest_npu_emul_kernel {
	int32_t multiplier;
	uint8_t shift;
	int8_t input_zero;
	int8_t output_zero;
	int8_t least;
	int8_t most;
};

/** A job, with all parameters by value. */
struct opwest_npu_emul_job {
	enum opwest_npu_emul_kind kind;
	struct opwest_npu_emul_kernel kernel;
	const int8_t *x;
	/** The weights, or the second operand. */
	const int8_t *w;
	const int32_t *bias;
	int8_t *y;
	/** Bytes of x, w and y. */
	uint32_t x_size;
	uint32_t w_size;
	uint32_t y_size;
	/** A dense layer is a convolution of `rows` x 1 pixels with a kernel of one pixel. */
	struct opwest_npu_emul_conv2d_shape shape;
};

/** The constant properties of a device. */
struct opwest_npu_emul_config {
	uint32_t latency_us;
	/** The time to load another program. */
	uint32_t load_us;
	int32_t queue_timeout_ms;
	uint16_t queue_depth;
	/** enum opwest_switching */
	uint8_t switching;
	/** queue_depth entries. */
	struct opwest_npu_emul_job *queue;
#ifdef __ZEPHYR__
	k_thread_stack_t *stack;
	size_t stack_size;
#endif
};

/** A pending fault. */
struct opwest_npu_emul_fault {
	bool armed;
	bool hangs;
	int error;
	uint32_t after;
};

/** The state of a device. */
struct opwest_npu_emul_data {
	struct opwest_accelerator_context context;
	struct opwest_port_thread thread;
	/** Signals a new job, or the end of the thread. */
	struct opwest_port_sem work;
	/** Signals that the running job must end. */
	struct opwest_port_sem wake;
	/** Signals space in the queue. */
	struct opwest_port_sem room;
	/** Signals that all jobs have ended, to abort. */
	struct opwest_port_sem idle;
	/** Guards the members below. */
	struct opwest_port_mutex lock;
	/** NULL when inactive. */
	const struct opwest_program *program;
	bool opened;
	/** The first job of the queue has started. It stays in the queue until it ends. */
	bool running;
	bool aborting;
	/** The running job, which hangs, ends. */
	bool resuming;
	bool stopping;
	uint16_t head;
	uint16_t count;
	struct opwest_npu_emul_fault faults[OPWEST_NPU_EMUL_POINTS];
	struct opwest_npu_emul_counts counts;
};

/** The hooks of every such device. */
extern const struct opwest_accelerator_driver_api opwest_npu_emul_api;

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_NPU_EMUL_STATE_H_ */
