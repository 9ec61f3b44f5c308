/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

/** The shapes this operator is compiled for, and its requantization. */
enum {
	HEIGHT = 8,
	WIDTH = 8,
	INPUTS = 1,
	OUTPUTS = 8,
	KERNEL = 3,
	PADDING = KERNEL / 2,
	SHIFT = 5,
	LARGEST = INT8_MAX,
};

/** First row (or column) of the kernel that is inside the image when centred on @p position. */
static inline int32_t first_tap(int32_t position)
{
	return position < PADDING ? PADDING - position : 0;
}

/** One past the last row (or column) of the kernel that is inside an image of @p size. */
static inline int32_t end_tap(int32_t position, int32_t size)
{
	int32_t room = size + PADDING - position;

	return room < KERNEL ? room : KERNEL;
}

/** Sum of products; the taps of a kernel row are neighbours in the image and in the weights. */
static inline int32_t dot(const int8_t *pixels, const int8_t *weights, int32_t count)
{
	int32_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		sum += (int32_t)pixels[i] * (int32_t)weights[i];
	}
	return sum;
}

/** Divide @p sum by 2^SHIFT and saturate it to int8; negative sums are 0, which is the ReLU. */
static inline int8_t requantize(int32_t sum)
{
	if (sum <= 0) {
		return 0;
	}

	/* The sum is not negative, so the shift is a division; an exact half is rounded up. */
	int32_t scaled = (sum + (1 << (SHIFT - 1))) >> SHIFT;

	return (int8_t)(scaled < LARGEST ? scaled : LARGEST);
}

/**
 * @brief 3x3 convolution, stride 1, zeros around the image; ReLU; requantization to int8.
 *
 * Every output is `min(127, floor((max(0, sum) + 16) / 32))`, where `sum` is the bias plus at most
 * nine products: a bias whose magnitude is at most 2^30 cannot overflow it.
 *
 * @param image  int8 [1, 8, 8, 1], rows, columns, channels
 * @param weight int8 [8, 3, 3, 1], output channel, kernel row, kernel column, input channel
 * @param bias   int32 [8], in units of an image value times a weight
 * @param result int8 [1, 8, 8, 8], written completely, 0 to 127
 *
 * @return 0
 */
int32_t conv2d_relu(const int8_t *image, const int8_t *weight, const int32_t *bias, int8_t *result)
{
	for (int32_t y = 0; y < HEIGHT; y++) {
		int32_t first_row = first_tap(y);
		int32_t end_row = end_tap(y, HEIGHT);

		for (int32_t x = 0; x < WIDTH; x++) {
			int32_t first_column = first_tap(x);
			int32_t columns = end_tap(x, WIDTH) - first_column;
			int32_t left = x + first_column - PADDING;

			for (int32_t output = 0; output < OUTPUTS; output++) {
				int32_t sum = bias[output];

				for (int32_t row = first_row; row < end_row; row++) {
					int32_t pixel = (y + row - PADDING) * WIDTH + left;
					int32_t line = (output * KERNEL + row) * KERNEL;
					int32_t tap = line + first_column;

					sum += dot(&image[pixel * INPUTS], &weight[tap * INPUTS],
						   columns * INPUTS);
				}
				*result++ = requantize(sum);
			}
		}
	}
	return 0;
}
