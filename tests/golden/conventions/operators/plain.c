/* SPDX-License-Identifier: Apache-2.0 */
/* Plain operators beside those of TVM's conventions; one takes memory as those do. */
#include "tvm/runtime/c_backend_api.h"
#include <stdint.h>

#define COUNT 6

int32_t total(const int32_t *x, int32_t *sum);
void negate(int32_t *x);
uint8_t label(const int32_t *x, int16_t limit);
double mean(const int32_t *x);

int32_t total(const int32_t *x, int32_t *sum)
{
	int64_t *wide = TVMBackendAllocWorkspace(1, 0, (uint64_t)8, 0, 64);

	if (wide == NULL) {
		return -1;
	}
	*wide = 0;
	for (int i = 0; i < COUNT; i++) {
		*wide += x[i];
	}
	*sum = (int32_t)*wide;
	return TVMBackendFreeWorkspace(1, 0, wide);
}

void negate(int32_t *x)
{
	for (int i = 0; i < COUNT; i++) {
		x[i] = ~x[i];
	}
}

/* The place of the first element above a limit, from 128 on: a value whose extension to 32 bits matters. */
uint8_t label(const int32_t *x, int16_t limit)
{
	uint8_t place = 0;

	while (place < COUNT && x[place] <= limit) {
		place++;
	}
	return (uint8_t)(128 + place);
}

double mean(const int32_t *x)
{
	double sum = 0;

	for (int i = 0; i < COUNT; i++) {
		sum += x[i];
	}
	return sum / COUNT;
}
