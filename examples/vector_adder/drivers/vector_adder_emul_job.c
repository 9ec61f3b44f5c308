/* SPDX-License-Identifier: Apache-2.0 */
/* What a job of the emulated device computes. */
#include <stddef.h>

#include "vector_adder_emul_internal.h"
#include "vector_adder_job.h"

/* The place of the factor in a program. */
#define FACTOR 4

int vector_adder_emul_compute(const uint32_t *registers)
{
	const uint64_t high = registers[REG_DESCRIPTOR / 4U + 1U];
	const uint64_t low = registers[REG_DESCRIPTOR / 4U];
	const struct vector_adder_job *const job =
		(const struct vector_adder_job *)(uintptr_t)(high << 32 | low);
	const int8_t *const program = (const int8_t *)(uintptr_t)job->program;
	const int8_t *const a = (const int8_t *)(uintptr_t)job->a;
	const int8_t *const b = (const int8_t *)(uintptr_t)job->b;
	int8_t *const result = (int8_t *)(uintptr_t)job->result;

	for (uint32_t i = 0; i < job->count; i++) {
		const int sum = a[i] + program[FACTOR] * b[i];

		result[i] = (int8_t)(sum < INT8_MIN ? INT8_MIN : sum > INT8_MAX ? INT8_MAX : sum);
	}
	return 0;
}
