/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

enum {
	PIXELS = 8 * 8,
	PAPER = -128,
	INK = 255,
};

static int32_t ink_of(int8_t pixel)
{
	return pixel > 0 ? pixel : 0;
}

/**
 * @brief Stretch the contrast: paper becomes -128, the darkest pixel 127, others in proportion.
 *
 * @param image  int8 [1, 8, 8, 1], 0 is paper
 * @param result int8 [1, 8, 8, 1]
 *
 * @return 0
 */
int32_t stretch(const int8_t *image, int8_t *result)
{
	int32_t darkest = 1;

	for (int32_t i = 0; i < PIXELS; i++) {
		if (image[i] > darkest) {
			darkest = image[i];
		}
	}
	for (int32_t i = 0; i < PIXELS; i++) {
		result[i] = (int8_t)((ink_of(image[i]) * INK + darkest / 2) / darkest + PAPER);
	}
	return 0;
}
