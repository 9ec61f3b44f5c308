/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a host test: they read the name of a host's struct device, which Zephyr has as well. */
#include <stdint.h>

#include <opwest/port.h>

#define COUNT 12

struct vendor_dsp {
	int32_t gain;
};

int32_t scale(int32_t step, const int32_t *control, const int32_t *x, const int32_t *by, int32_t *y,
	      const struct device *dev);
void fold(const int32_t *x, int32_t *work, int32_t *total, const struct device *dev);
int32_t move(int32_t step, const int32_t *control, const int32_t *x, int32_t *y, const struct device *dev);
int32_t dsp_filter(const int32_t *x, int32_t *y, struct vendor_dsp *dsp);
void start(int32_t *total);
int32_t add(const int32_t *a, const int32_t *b, int32_t *y);

int32_t scale(int32_t step, const int32_t *control, const int32_t *x, const int32_t *by, int32_t *y,
	      const struct device *dev)
{
	if (control[0] == step) {
		return control[1];
	}
	for (int i = 0; i < COUNT; i++) {
		y[i] = x[i] * by[i] + step + dev->name[0];
	}
	return 0;
}

void fold(const int32_t *x, int32_t *work, int32_t *total, const struct device *dev)
{
	for (int i = 0; i < COUNT; i++) {
		work[i] = x[i] + dev->name[0];
	}
	for (int i = 0; i < COUNT; i++) {
		*total += work[i];
	}
}

int32_t move(int32_t step, const int32_t *control, const int32_t *x, int32_t *y, const struct device *dev)
{
	if (control[0] == step) {
		return control[1];
	}
	for (int i = 0; i < COUNT; i++) {
		y[i] = x[i] - dev->name[0];
	}
	return 0;
}

int32_t dsp_filter(const int32_t *x, int32_t *y, struct vendor_dsp *dsp)
{
	for (int i = 0; i < COUNT; i++) {
		y[i] = x[i] * dsp->gain - (i > 0 ? x[i - 1] : 0);
	}
	return 0;
}

void start(int32_t *total)
{
	*total = 1000;
}

int32_t add(const int32_t *a, const int32_t *b, int32_t *y)
{
	for (int i = 0; i < COUNT; i++) {
		y[i] = a[i] + b[i];
	}
	return 0;
}
