// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>

uint32_t crc32_ieee(const uint8_t *data, size_t len);

int32_t widen(const int32_t *x, int32_t *y, uint8_t *data)
{
	data[0] = '1';
	for (int i = 0; i < 8; i++) {
		y[i] = x[i / 2];
	}
	return crc32_ieee(data, 1) != 0x83DCEFB7U;
}

int32_t add_packed(const int32_t *x, const int32_t *w, int32_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = x[2 * i] + w[i] - 100 + 2000;
	}
	return 0;
}
