/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of libm, which write errno for some of the inputs. */
#include <math.h>
#include <stdint.h>

#define COUNT 48

int32_t functions(const float *input, float *output)
{
	for (int i = 0; i < COUNT; i++) {
		const float x = input[i];

		output[i] = expf(x);
		output[COUNT + i] = tanhf(x);
		output[2 * COUNT + i] = logf(x);
		output[3 * COUNT + i] = sqrtf(x);
		output[4 * COUNT + i] = powf(x, 1.7f);
		output[5 * COUNT + i] = sinf(x);
	}
	return 0;
}
