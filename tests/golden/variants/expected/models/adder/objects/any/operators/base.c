// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

int32_t add(const int32_t *x, const int32_t *w, int32_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = x[i] + w[i];
	}
	return 0;
}
