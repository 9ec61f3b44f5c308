/* SPDX-License-Identifier: Apache-2.0 */
/* Compares elements as opwest_compare() does: reads "dtype absolute relative got wanted" (elements as bytes in hex). */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <opwest/compare.h>

static uint32_t bytes_of(const char *hex, uint8_t *bytes)
{
	uint32_t count = 0U;
	unsigned int byte;

	while (sscanf(&hex[2U * count], "%2x", &byte) == 1) {
		bytes[count] = (uint8_t)byte;
		count++;
	}
	return count;
}

int main(void)
{
	char hex[2][200];
	uint8_t memory[2][100];
	unsigned int dtype;
	struct opwest_tolerance tolerance;

	while (scanf("%u %lf %lf %199s %199s", &dtype, &tolerance.absolute, &tolerance.relative, hex[0], hex[1]) == 5) {
		/* Offset by one byte: neither is aligned. */
		const uint32_t size = bytes_of(hex[0], &memory[0][1]);
		const uint32_t count = size / (uint32_t)opwest_dtype_size((uint8_t)dtype);
		uint32_t first = UINT32_MAX;

		(void)bytes_of(hex[1], &memory[1][1]);

		const uint32_t found = opwest_compare((uint8_t)dtype, &memory[0][1], &memory[1][1], count, tolerance, &first);

		if (found != opwest_compare((uint8_t)dtype, &memory[0][1], &memory[1][1], count, tolerance, NULL)) {
			return 1;
		}
		printf("%" PRIu32 " %" PRId32 "\n", found, (int32_t)first);
	}
	for (uint32_t bits = 0U; bits <= UINT16_MAX; bits++) {
		const uint16_t element = (uint16_t)bits;

		printf("%a\n", opwest_float_value(OPWEST_FLOAT16, &element));
	}
	return 0;
}
