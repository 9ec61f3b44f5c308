/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

int32_t store(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f, int64_t g, uint64_t h, uint16_t i,
	      float j, double k, uint8_t l, uint8_t *bytes);
void add(const int32_t *x, int32_t *total, int32_t *scratch);
void start(const int32_t *table, const int16_t *offsets, const uint8_t *gains, int32_t *total);
void finish(const int32_t *total, int32_t *sum);
int32_t tick(const uint8_t *seen, uint8_t *count);

#define PUT(value)                                                                                 \
	do {                                                                                       \
		memcpy(bytes, &(value), sizeof(value));                                            \
		bytes += sizeof(value);                                                            \
	} while (0)

int32_t store(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f, int64_t g, uint64_t h, uint16_t i,
	      float j, double k, uint8_t l, uint8_t *bytes)
{
	PUT(a);
	PUT(b);
	PUT(c);
	PUT(d);
	PUT(e);
	PUT(f);
	PUT(g);
	PUT(h);
	PUT(i);
	PUT(j);
	PUT(k);
	PUT(l);
	return 0;
}

void start(const int32_t *table, const int16_t *offsets, const uint8_t *gains, int32_t *total)
{
	for (int i = 0; i < 8; i++) {
		total[i] = table[i] * gains[i] + offsets[i];
	}
}

/* Adds to `total` the reverse of `x`, through the scratch memory. */
void add(const int32_t *x, int32_t *total, int32_t *scratch)
{
	for (int i = 0; i < 8; i++) {
		scratch[i] = x[7 - i];
	}
	for (int i = 0; i < 8; i++) {
		total[i] += scratch[i];
	}
}

void finish(const int32_t *total, int32_t *sum)
{
	*sum = 0;
	for (int i = 0; i < 8; i++) {
		*sum += total[i];
	}
}

/* Keeps state: counts its calls. */
static uint8_t calls;

int32_t tick(const uint8_t *seen, uint8_t *count)
{
	calls++;
	*count = *seen;
	return 0;
}
