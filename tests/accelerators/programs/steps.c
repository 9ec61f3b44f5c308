/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that record their calls: y[i] = 3 a[i] + 5 b[i + 1] + step. */
#include <stddef.h>
#include <stdint.h>

#include <opwest/launch.h>

struct vendor_npu;

int32_t journal_step(int32_t step, const struct device *dev);
void journal_compute(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, const struct device *dev);
int32_t journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		       const struct opwest_launch *launch);

int32_t cpu(int32_t step, const int32_t *a, const int32_t *b, int32_t *y);
void cpu_void(int32_t step, const int32_t *a, const int32_t *b, int32_t *y);
int32_t npu(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, const struct device *dev);
int32_t launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, const struct opwest_launch *launch);
int32_t vendor(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, struct vendor_npu *dev);

int32_t cpu(int32_t step, const int32_t *a, const int32_t *b, int32_t *y)
{
	const int32_t rc = journal_step(step, NULL);

	if (rc == 0) {
		journal_compute(step, a, b, y, NULL);
	}
	return rc;
}

void cpu_void(int32_t step, const int32_t *a, const int32_t *b, int32_t *y)
{
	(void)journal_step(step, NULL);
	journal_compute(step, a, b, y, NULL);
}

int32_t npu(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, const struct device *dev)
{
	const int32_t rc = journal_step(step, dev);

	if (rc == 0) {
		journal_compute(step, a, b, y, dev);
	}
	return rc;
}

int32_t launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, const struct opwest_launch *launch)
{
	return journal_launch(step, a, b, y, launch);
}

int32_t vendor(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, struct vendor_npu *dev)
{
	const int32_t rc = dev == NULL ? -1 : journal_step(step, NULL);

	if (rc == 0) {
		journal_compute(step, a, b, y, NULL);
	}
	return rc;
}
