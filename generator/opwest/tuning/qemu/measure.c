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

/** Whether a float of an output is wrong. Two equal patterns of bits are right, also those of NaN. */
static uint32_t is_far(const struct block *output, uint32_t place)
{
	float found, wanted, distance;

	__builtin_memcpy(&found, output->memory + 4 * place, sizeof(found));
	__builtin_memcpy(&wanted, output->content + 4 * place, sizeof(wanted));
	distance = found < wanted ? wanted - found : found - wanted;
	return __builtin_memcmp(&found, &wanted, sizeof(found)) != 0 && !(distance <= output->limits[place]);
}

/** Return the wrong bytes of an output, a wrong float as one; `first` is the place of the first one. */
static uint32_t compared(const struct block *output, uint32_t *first)
{
	const uint32_t step = output->limits == 0 ? 1 : 4;
	uint32_t wrong = 0;

	for (uint32_t k = 0; k < output->size; k += step) {
		if (step == 1 ? output->memory[k] != output->content[k] : is_far(output, k / 4)) {
			*first = wrong == 0 ? k : *first;
			wrong++;
		}
	}
	return wrong;
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
		uint32_t in_this = 0, found = 0;

		if (one->is_reference) {
			for (uint32_t k = 0; k < output->size; k++) {
				output->content[k] = output->memory[k];
			}
		} else {
			found = compared(output, &in_this);
		}
		first = wrong == 0 ? place + in_this : first;
		wrong += found;
		place += output->size;
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
