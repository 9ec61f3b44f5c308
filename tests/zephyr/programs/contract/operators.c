/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of all models: 16 numbers, on the device or on the processor. */
#include <stdint.h>
#include <string.h>

#include <opwest/npu_emul.h>
#include <zephyr/kernel.h>

#define COUNT 16

/* Enqueues y = what the program computes of x. */
int32_t scale(const int8_t *x, int8_t *y, const struct opwest_launch *launch)
{
	return opwest_npu_emul_relu(launch->dev, 1, x, y, COUNT);
}

/* The same, complete when it returns, in the time that the manifest gives. */
int32_t scale_and_wait(const int8_t *x, int8_t *y, const struct opwest_launch *launch)
{
	return opwest_npu_emul_finish(launch->dev, scale(x, y, launch), launch->timeout_ms);
}

/* Copies on the processor, which takes the given microseconds. */
int32_t spin(uint32_t us, const int8_t *x, int8_t *y)
{
	k_busy_wait(us);
	memcpy(y, x, COUNT);
	return 0;
}

/* Adds on the processor, which takes the given microseconds. */
int32_t sum(uint32_t us, const int8_t *x, const int8_t *z, int8_t *y)
{
	k_busy_wait(us);
	for (int i = 0; i < COUNT; i++) {
		y[i] = (int8_t)(x[i] + z[i]);
	}
	return 0;
}
