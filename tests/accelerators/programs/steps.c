/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that record their calls: y[i] = 3 a[i] + 5 b[i + 1] + step. */
#include "journal.h"

struct vendor_npu;

int32_t npu(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, const struct device *dev)
{
	const int32_t rc = journal_step(step, dev);

	if (rc == 0) {
		journal_compute(step, a, b, y, dev);
	}
	return rc;
}

int32_t cpu(int32_t step, const int32_t *a, const int32_t *b, int32_t *y)
{
	return npu(step, a, b, y, NULL);
}

void cpu_void(int32_t step, const int32_t *a, const int32_t *b, int32_t *y)
{
	(void)journal_step(step, NULL);
	journal_compute(step, a, b, y, NULL);
}

int32_t launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
	       const struct opwest_launch *launch)
{
	return journal_launch(step, a, b, y, launch);
}

int32_t vendor(int32_t step, const int32_t *a, const int32_t *b, int32_t *y, struct vendor_npu *dev)
{
	return dev == NULL ? -1 : npu(step, a, b, y, NULL);
}
