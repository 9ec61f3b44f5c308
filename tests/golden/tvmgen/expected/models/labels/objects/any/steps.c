/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

/* y = 2 x; fails with the first element if it is negative. */
int32_t twice(const int16_t *x, int16_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = (int16_t)(2 * x[i]);
	}
	return x[0] < 0 ? x[0] : 0;
}
