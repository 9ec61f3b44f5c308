/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

int32_t scale(const float *x, const float *factor, float *y)
{
	for (int i = 0; i < 6; i++) {
		y[i] = x[i] * factor[0];
	}
	return 0;
}

int32_t round_off(const float *y, const int8_t *bias, int8_t *q, int64_t *total)
{
	total[0] = 0;
	for (int i = 0; i < 6; i++) {
		q[i] = (int8_t)((int)(y[i] + (y[i] < 0.0f ? -0.5f : 0.5f)) + bias[i]);
		total[0] += (int64_t)q[i] * 4294967296;
	}
	return 0;
}

/* IEEE halves: 1 or -1. */
int32_t signs(const float *y, uint16_t *signs)
{
	for (int i = 0; i < 6; i++) {
		signs[i] = y[i] < 0.0f ? 0xbc00U : 0x3c00U;
	}
	return 0;
}
