/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a host test: they read the name of a host's struct device, which Zephyr has as well. */
#include <stdint.h>

#include <opwest/port.h>

int32_t mix(int32_t step, const int32_t *control, const int32_t *x, int32_t *y, const struct device *dev);
void reverse(const int32_t *x, int32_t *y, int32_t *work);
void stamp(int32_t *y, const struct device *dev);

int32_t mix(int32_t step, const int32_t *control, const int32_t *x, int32_t *y, const struct device *dev)
{
	if (control[0] == step && control[1] != 0) {
		return control[1];
	}
	for (int i = 0; i < 16; i++) {
		y[i] = 3 * x[i] + step + dev->name[0];
	}
	return 0;
}

void reverse(const int32_t *x, int32_t *y, int32_t *work)
{
	for (int i = 0; i < 16; i++) {
		work[i] = x[i];
	}
	for (int i = 0; i < 16; i++) {
		y[i] = work[15 - i];
	}
}

void stamp(int32_t *y, const struct device *dev)
{
	for (int i = 0; i < 16; i++) {
		y[i] += dev->name[0] << 8;
	}
}
