/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

struct device {
	const char *name; /* the first member, on a host as in Zephyr */
};

/* y = x + the first letter of the device's name. */
int32_t add_name(const int32_t *x, int32_t *y, const struct device *dev)
{
	for (int i = 0; i < 3; i++) {
		y[i] = x[i] + dev->name[0];
	}
	return 0;
}

int32_t negate(const int32_t *x, int32_t *y, int32_t *work)
{
	for (int i = 0; i < 3; i++) {
		work[i] = -x[i];
	}
	for (int i = 0; i < 3; i++) {
		y[i] = work[i];
	}
	return 0;
}
