/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the start of an image and its measured part. */
#ifndef IMAGE_H_
#define IMAGE_H_

#include <stdint.h>

/** One candidate with its data. */
struct candidate {
	/** Call the operators. */
	void (*run)(void);
	/** Triples: an input, its content, bytes. */
	const struct block *inputs;
	/** Triples: an output, the expected content, bytes. */
	const struct block *outputs;
	/** Whether the outputs become the expected content, for the candidates that follow. */
	uint32_t is_reference;
	uint32_t input_count;
	uint32_t output_count;
};

struct block {
	uint8_t *memory;
	uint8_t *content;
	uint32_t size;
	/** The greatest difference of each float of an output from the expected one; NULL: bytes are equal. */
	const float *limits;
};

/** Bytes in front of and after each block, which no candidate may change. */
#define GUARD 32

extern const struct candidate candidates[];
extern const uint32_t candidate_count;

/** The memory of all blocks and scratch arguments of the candidates. */
extern uint8_t memory[];
extern const uint32_t memory_size;

/** Print text on the host. */
void print(const char *text);

/** Call a function so that the plugin counts its instructions. */
void invoke(void (*run)(void));

/** The stack. */
extern uint32_t stack_bottom[], stack_top[];

static inline uint32_t *stack_pointer(void)
{
	uint32_t *found;

#ifdef __riscv
	__asm__ volatile("mv %0, sp" : "=r"(found));
#else
	__asm__ volatile("mov %0, sp" : "=r"(found));
#endif
	return found;
}

/** Called before the candidates, and by SysTick: empty, unless the image has other definitions. */
void before_candidates(void);
void tick(void);

/**
 * Call all candidates, and print for each: its number, wrong bytes, the place of the first one, changed guards, bytes of
 * stack.
 */
void measure(void);

#endif /* IMAGE_H_ */
