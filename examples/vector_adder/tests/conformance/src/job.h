/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief A job for the conformance suite, and its results.
 */
#ifndef JOB_H_
#define JOB_H_

#include <stdint.h>

#include <opwest/model.h>
#include <vector_adder.h>

/** Numbers of a result. */
#define SIZE 4

#define PROGRAM(factor) {'V', 'A', 'D', 'D', (factor)}

OPWEST_ALIGNED(16) static const uint8_t bytes[2][16] = {PROGRAM(1), PROGRAM(3)};
static const struct opwest_program programs[2] = {
	{"one", bytes[0], sizeof(bytes[0])},
	{"three", bytes[1], sizeof(bytes[1])},
};
static const struct opwest_program truncated = {"truncated", bytes[0], sizeof(bytes[0]) - 1U};
static const int8_t input[SIZE] = {1, -2, 3, -4};
static const int8_t step[SIZE] = {1, 2, -3, 4};

/** @brief Enqueue the job: from `source` to `result`. */
static inline int enqueue(const int8_t *source, int8_t *result, const struct opwest_launch *launch)
{
	return vector_adder_add(source, step, result, SIZE, launch);
}

/** @brief Return the right number at a place of the result. */
static inline int8_t wanted(const int8_t *source, int place, const struct opwest_program *program)
{
	const int sum = source[place] + (int8_t)program->data[4] * step[place];

	return (int8_t)(sum < INT8_MIN ? INT8_MIN : sum > INT8_MAX ? INT8_MAX : sum);
}

#endif /* JOB_H_ */
