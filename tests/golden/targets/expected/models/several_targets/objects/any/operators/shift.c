/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

int32_t shift(const int16_t *x, uint8_t by, int16_t *y);

int32_t shift(const int16_t *x, uint8_t by, int16_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = (int16_t)(x[i] >> by);
	}
	return 0;
}
