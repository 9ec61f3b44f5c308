/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

/** The shapes this operator is compiled for. */
enum {
	INPUTS = 4 * 4 * 8,
	OUTPUTS = 10,
};

/**
 * @brief Fully connected layer: `scores[o] = bias[o] + sum(pooled[i] * weight[o][i])`.
 *
 * The scores are int32, because only their order is used. The sum of the products is 2^21 at
 * most: a bias whose magnitude is at most 2^30 cannot overflow.
 *
 * @param pooled int8 [1, 4, 4, 8], read as 128 values
 * @param weight int8 [10, 128], one row for every output
 * @param bias   int32 [10], in units of an input value times a weight
 * @param scores int32 [1, 10], written completely
 *
 * @return 0
 */
int32_t dense(const int8_t *pooled, const int8_t *weight, const int32_t *bias, int32_t *scores)
{
	for (int32_t output = 0; output < OUTPUTS; output++) {
		int32_t sum = bias[output];

		for (int32_t i = 0; i < INPUTS; i++) {
			sum += (int32_t)pooled[i] * (int32_t)weight[i];
		}
		scores[output] = sum;
		weight += INPUTS;
	}
	return 0;
}
