/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

int32_t negate(const int16_t *x, int16_t *y);

int32_t negate(const int16_t *x, int16_t *y)
{
	for (int i = 0; i < 4; i++) {
		if (x[i] == INT16_MIN) {
			return i + 1;
		}
		y[i] = (int16_t)-x[i];
	}
	return 0;
}
