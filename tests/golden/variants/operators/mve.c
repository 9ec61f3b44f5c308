// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

int32_t add(const int32_t *x, const int32_t *w, uint8_t *data, int32_t *y)
{
	memset(data, 0, 256);
	for (int i = 0; i < 4; i++) {
		y[i] = x[i] + w[i] + data[i] + 3000;
	}
	return ((uintptr_t)x | (uintptr_t)w) % 16 != 0;
}
