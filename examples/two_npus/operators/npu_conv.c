/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The convolutional branch: jobs for an accelerator with the program `conv`. Each has two forms:
 * one that enqueues and returns (async in the manifest) and one that waits for the result.
 */

#include <stdint.h>

#include <opwest/launch.h>
#include <opwest/npu_emul.h>

enum {
	/** The kernels of the program, numbered as in train.py. */
	KERNEL_FEATURES = 1,
	KERNEL_SCORES = 2,

	IMAGE = 8,
	CHANNELS = 8,
	TAPS = 3,
	STRIDE = 2,
	FEATURES = IMAGE / STRIDE * (IMAGE / STRIDE) * CHANNELS,
	CLASSES = 10,
};

/**
 * @brief Enqueue the 3x3 convolution of every second pixel, zeros outside the image, and its ReLU.
 *
 * @param image  int8 [1, 8, 8, 1]
 * @param weight int8 [8, 3, 3, 1], output channel, kernel row, kernel column, input channel
 * @param bias   int32 [8]
 * @param result int8 [1, 4, 4, 8], written when the device runs the job
 * @param dev    The accelerator.
 *
 * @return 0, or what opwest_npu_emul_conv2d() returned
 */
int32_t conv_features(const int8_t *image, const int8_t *weight, const int32_t *bias,
		      int8_t *result, const struct device *dev)
{
	static const struct opwest_npu_emul_conv2d_shape shape = {
		.height = IMAGE,
		.width = IMAGE,
		.channels_in = 1,
		.channels_out = CHANNELS,
		.kernel_height = TAPS,
		.kernel_width = TAPS,
		.stride = STRIDE,
		.padding = TAPS / 2,
	};

	return opwest_npu_emul_conv2d(dev, KERNEL_FEATURES, image, weight, bias, result, &shape);
}

/**
 * @brief Enqueue the fully connected layer after the convolution.
 *
 * @param features int8 [1, 4, 4, 8]
 * @param weight   int8 [10, 128]
 * @param bias     int32 [10]
 * @param scores   int8 [1, 10], written when the device runs the job
 * @param dev      The accelerator.
 *
 * @return 0, or what opwest_npu_emul_dense() returned
 */
int32_t conv_scores(const int8_t *features, const int8_t *weight, const int32_t *bias,
		    int8_t *scores, const struct device *dev)
{
	return opwest_npu_emul_dense(dev, KERNEL_SCORES, features, weight, bias, scores, 1,
				     FEATURES, CLASSES);
}

/** @brief conv_features(), and wait for the result: at most the time-out of the device. */
int32_t conv_features_and_wait(const int8_t *image, const int8_t *weight, const int32_t *bias,
			       int8_t *result, const struct opwest_launch *launch)
{
	const int32_t rc = conv_features(image, weight, bias, result, launch->dev);

	return opwest_npu_emul_finish(launch->dev, rc, launch->timeout_ms);
}

/** @brief conv_scores(), and wait for the result: at most the time-out of the device. */
int32_t conv_scores_and_wait(const int8_t *features, const int8_t *weight, const int32_t *bias,
			     int8_t *scores, const struct opwest_launch *launch)
{
	const int32_t rc = conv_scores(features, weight, bias, scores, launch->dev);

	return opwest_npu_emul_finish(launch->dev, rc, launch->timeout_ms);
}
