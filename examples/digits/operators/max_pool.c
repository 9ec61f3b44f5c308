/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

/** The shapes this operator is compiled for. */
enum {
	HEIGHT = 8,
	WIDTH = 8,
	CHANNELS = 8,
	WINDOW = 2,
};

/**
 * @brief Largest value of every 2x2 window, channel by channel; windows do not overlap.
 *
 * @param features int8 [1, 8, 8, 8], rows, columns, channels
 * @param result   int8 [1, 4, 4, 8], written completely
 *
 * @return 0
 */
int32_t max_pool(const int8_t *features, int8_t *result)
{
	for (int32_t y = 0; y < HEIGHT; y += WINDOW) {
		for (int32_t x = 0; x < WIDTH; x += WINDOW) {
			const int8_t *window = &features[(y * WIDTH + x) * CHANNELS];

			for (int32_t channel = 0; channel < CHANNELS; channel++) {
				int8_t largest = INT8_MIN;

				for (int32_t row = 0; row < WINDOW; row++) {
					for (int32_t column = 0; column < WINDOW; column++) {
						int32_t pixel = row * WIDTH + column;
						int8_t value = window[pixel * CHANNELS + channel];

						largest = value > largest ? value : largest;
					}
				}
				*result++ = largest;
			}
		}
	}
	return 0;
}
