/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fully connected branch: jobs for an accelerator with the program `dense`. Each has two
 * forms: one that enqueues and returns (async in the manifest) and one that waits for the result.
 */

#include <stdint.h>

#include <opwest/launch.h>
#include <opwest/npu_emul.h>

enum {
	/** The kernels of the program, numbered as in train.py. */
	KERNEL_FEATURES = 1,
	KERNEL_SCORES = 2,

	PIXELS = 8 * 8,
	HIDDEN = 32,
	CLASSES = 10,
};

/**
 * @brief Enqueue the hidden layer and its ReLU.
 *
 * @param image  int8 [1, 8, 8, 1], 0 to 16
 * @param weight int8 [32, 64]
 * @param bias   int32 [32]
 * @param hidden int8 [1, 32], written when the device runs the job
 * @param dev    The accelerator.
 *
 * @return 0, or what opwest_npu_emul_dense() returned
 */
int32_t hidden_features(const int8_t *image, const int8_t *weight, const int32_t *bias,
			int8_t *hidden, const struct device *dev)
{
	return opwest_npu_emul_dense(dev, KERNEL_FEATURES, image, weight, bias, hidden, 1, PIXELS,
				     HIDDEN);
}

/**
 * @brief Enqueue the output layer.
 *
 * @param hidden int8 [1, 32]
 * @param weight int8 [10, 32]
 * @param bias   int32 [10]
 * @param scores int8 [1, 10], written when the device runs the job
 * @param dev    The accelerator.
 *
 * @return 0, or what opwest_npu_emul_dense() returned
 */
int32_t hidden_scores(const int8_t *hidden, const int8_t *weight, const int32_t *bias,
		      int8_t *scores, const struct device *dev)
{
	return opwest_npu_emul_dense(dev, KERNEL_SCORES, hidden, weight, bias, scores, 1, HIDDEN,
				     CLASSES);
}

/** @brief hidden_features(), and wait for the result: at most the time-out of the device. */
int32_t hidden_features_and_wait(const int8_t *image, const int8_t *weight, const int32_t *bias,
				 int8_t *hidden, const struct opwest_launch *launch)
{
	const int32_t rc = hidden_features(image, weight, bias, hidden, launch->dev);

	return opwest_npu_emul_finish(launch->dev, rc, launch->timeout_ms);
}

/** @brief hidden_scores(), and wait for the result: at most the time-out of the device. */
int32_t hidden_scores_and_wait(const int8_t *hidden, const int8_t *weight, const int32_t *bias,
			       int8_t *scores, const struct opwest_launch *launch)
{
	const int32_t rc = hidden_scores(hidden, weight, bias, scores, launch->dev);

	return opwest_npu_emul_finish(launch->dev, rc, launch->timeout_ms);
}
