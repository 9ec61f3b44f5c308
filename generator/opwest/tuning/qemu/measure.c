/* SPDX-License-Identifier: Apache-2.0 */
/* Run candidates and compare their results, without a C library. */
#include <stdint.h>

#include "image.h"

#define PATTERN 0xa5
#define PAINT 0x5aa5c33cu

static void print_number(uint32_t number)
{
	char text[12];
	char *at = text + sizeof(text);

	*--at = '\0';
	*--at = ' ';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	print(at);
}

static uint32_t changed_guards(const struct block *block)
{
	uint32_t changed = 0;

	for (uint32_t i = 1; i <= GUARD; i++) {
		changed += block->memory[-(int32_t)i] != PATTERN;
		changed += block->memory[block->size + i - 1] != PATTERN;
	}
	return changed;
}

/** Call a function; return the bytes of stack that it and invoke() use. */
static __attribute__((noinline)) uint32_t stack_of(void (*run)(void))
{
	uint32_t *const top = stack_pointer();
	uint32_t *at = stack_bottom;

	while (at < top) {
		*at++ = PAINT;
	}
	invoke(run);
	for (at = stack_bottom; at < top && *at == PAINT; at++) {
	}
	return (uint32_t)(top - at) * sizeof(*at);
}

static void measure_one(uint32_t number)
{
	const struct candidate *one = &candidates[number];
	uint32_t wrong = 0, first = 0, place = 0, changed = 0, stack;

	for (uint32_t i = 0; i < memory_size; i++) {
		memory[i] = PATTERN;
	}
	for (uint32_t i = 0; i < one->input_count; i++) {
		for (uint32_t k = 0; k < one->inputs[i].size; k++) {
			one->inputs[i].memory[k] = one->inputs[i].content[k];
		}
	}
	stack = stack_of(one->run);
	for (uint32_t i = 0; i < one->output_count; i++) {
		const struct block *output = &one->outputs[i];

		for (uint32_t k = 0; k < output->size; k++, place++) {
			if (one->is_reference) {
				output->content[k] = output->memory[k];
			} else if (output->memory[k] != output->content[k]) {
				first = wrong == 0 ? place : first;
				wrong++;
			}
		}
		changed += changed_guards(output);
	}
	for (uint32_t i = 0; i < one->input_count; i++) {
		changed += changed_guards(&one->inputs[i]);
	}
	print("candidate ");
	print_number(number);
	print_number(wrong);
	print_number(first);
	print_number(changed);
	print_number(stack);
	print("\n");
}

void measure(void)
{
	for (uint32_t i = 0; i < candidate_count; i++) {
		measure_one(i);
	}
}
