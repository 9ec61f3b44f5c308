/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "copies.h"

#define COPY(name, type)                                                                           \
	int32_t copy_##name(const type *x, type *y)                                                \
	{                                                                                          \
		memcpy(y, x, ELEMENTS * sizeof(type));                                             \
		return 0;                                                                          \
	}

COPY(int8, int8_t)
COPY(uint8, uint8_t)
COPY(int16, int16_t)
COPY(uint16, uint16_t)
COPY(int32, int32_t)
COPY(uint32, uint32_t)
COPY(int64, int64_t)
COPY(uint64, uint64_t)
COPY(float16, uint16_t)
COPY(float32, float)
COPY(float64, double)
COPY(bool, uint8_t)
