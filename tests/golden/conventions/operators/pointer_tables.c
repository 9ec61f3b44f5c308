/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that take tables of pointers; like CasADi's functions, `cross` writes entries of its table. */
#include <stddef.h>
#include <stdint.h>

int32_t cross(const int32_t **in, void **out, const uint8_t *context, int64_t *work, int8_t by);
int64_t dot(int32_t **rows, int32_t count);

int32_t cross(const int32_t **in, void **out, const uint8_t *context, int64_t *work, int8_t by)
{
	if (context != NULL || in[2] != NULL || in[3] != NULL || out[2] != NULL || by < 0) {
		return 5;
	}
	in[2] = in[0];
	in[3] = in[1];
	for (int i = 0; i < 6; i++) {
		work[i] = (int64_t)in[2][i] + in[3][i % 3 * 2 + i / 3];
	}
	*(double *)out[1] = 0.0;
	for (int i = 0; i < 6; i++) {
		((int32_t *)out[0])[i] = (int32_t)(work[i] % 1000 * by);
		*(double *)out[1] += (double)work[i];
	}
	return 0;
}

int64_t dot(int32_t **rows, int32_t count)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < count; i++) {
		rows[1][i] = rows[0][i] / 2 - rows[1][i];
		sum += (int64_t)rows[0][i] * rows[1][i];
	}
	return sum;
}
