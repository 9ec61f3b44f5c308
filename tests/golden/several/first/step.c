/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

int32_t helper(int32_t x, int32_t by);
int32_t step(const int32_t *x, const int32_t *by, int32_t *y);

int32_t helper(int32_t x, int32_t by)
{
	return x + by;
}

int32_t step(const int32_t *x, const int32_t *by, int32_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = helper(x[i], by[i]);
	}
	return 0;
}
