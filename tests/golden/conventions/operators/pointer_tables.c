/* SPDX-License-Identifier: Apache-2.0 */
/* An operator that takes tables of pointers; like CasADi's functions, it writes entries of its table. */
#include <stddef.h>
#include <stdint.h>

int32_t cross(const int32_t **in, void **out, uint8_t *context, int64_t *work, int8_t by);

int32_t cross(const int32_t **in, void **out, uint8_t *context, int64_t *work, int8_t by)
{
	const int32_t *const order = out[0];

	if (context != NULL || in[2] != NULL || in[3] != NULL || out[3] != NULL || by < 0) {
		return 5;
	}
	in[2] = in[0];
	in[3] = in[1];
	for (int i = 0; i < 6; i++) {
		work[i] = (int64_t)in[2][i] + in[3][i % 3 * 2 + i / 3];
	}
	*(double *)out[2] = 0.0;
	for (int i = 0; i < 6; i++) {
		((int32_t *)out[1])[i] = (int32_t)(work[(uint32_t)order[i] % 6U] % 1000 * by);
		*(double *)out[2] += (double)((int32_t *)out[1])[i] * (i + 1);
	}
	return 0;
}
