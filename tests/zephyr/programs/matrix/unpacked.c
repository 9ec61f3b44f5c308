/* SPDX-License-Identifier: Apache-2.0 */
/* Plain parameters: the float scalar is in a register of the float ABI. */
#include <stdint.h>

int32_t unpacked_mixed(const int32_t *x, const float *w, int32_t by, float gain, int32_t *y, float *z)
{
	for (int i = 0; i < 6; i++) {
		y[i] = x[i] * by + 7;
		z[i] = w[i] * gain + 0.25f;
	}
	return 0;
}
