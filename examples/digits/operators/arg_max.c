/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

/** The shape this operator is compiled for. */
enum {
	CLASSES = 10,
};

/**
 * @brief Index of the largest score; the first of equal scores.
 *
 * @param scores int32 [1, 10]
 * @param label  int32 [1], 0 to 9
 *
 * @return 0
 */
int32_t arg_max(const int32_t *scores, int32_t *label)
{
	int32_t best = 0;

	for (int32_t i = 1; i < CLASSES; i++) {
		if (scores[i] > scores[best]) {
			best = i;
		}
	}
	*label = best;
	return 0;
}
