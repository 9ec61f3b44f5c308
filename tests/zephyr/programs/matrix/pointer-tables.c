/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of pointers to tensors, scalars by value. */
#include <stdint.h>

int32_t pointer_tables_mixed(const void **in, int32_t by, float gain, void **out)
{
	const int32_t *const x = in[0];
	const float *const w = in[1];

	for (int i = 0; i < 6; i++) {
		((int32_t *)out[0])[i] = x[i] * by + 7;
		((float *)out[1])[i] = w[i] * gain + 0.25f;
	}
	return 0;
}
