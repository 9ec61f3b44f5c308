/* SPDX-License-Identifier: Apache-2.0 */
/* npu_functions: an image calls no driver with other functions, older ones, or none. */
#include <opwest/npu_emul_functions.h>

#include "npu_test.h"

static int calls;

static int counted(const struct device *dev, uint16_t kernel, const int8_t *x, int8_t *y,
		   uint32_t count)
{
	(void)dev;
	(void)kernel;
	(void)x;
	(void)y;
	(void)count;
	calls++;
	return 0;
}

static struct opwest_npu_emul_functions functions = {.relu = counted};
static struct opwest_accelerator_driver_api api;
static const struct device dev = {.name = "other", .api = &api};
static const struct device without_hooks = {.name = "none"};

static int relu(const struct device *device)
{
	int8_t x[1] = {1};
	int8_t y[1];

	return opwest_npu_emul_relu(device, 1U, x, y, 1U);
}

int main(void)
{
	EXPECT(relu(&without_hooks), -ENOTSUP);
	EXPECT(relu(&dev), -ENOTSUP);
	api.functions = &functions.base;
	functions.base.size = sizeof(functions);
	EXPECT(relu(&dev), -ENOTSUP);
	functions.base.id = OPWEST_NPU_EMUL_FUNCTIONS_ID;
	functions.base.size = sizeof(functions) - 1U;
	EXPECT(relu(&dev), -ENOTSUP);
	EXPECT(opwest_npu_emul_finish(&dev, 0, 0), -ENOTSUP);
	EXPECT(opwest_npu_emul_dense(&dev, 1U, NULL, NULL, NULL, NULL, 1U, 1U, 1U), -ENOTSUP);
	EXPECT(opwest_npu_emul_conv2d(&dev, 1U, NULL, NULL, NULL, NULL, NULL), -ENOTSUP);
	EXPECT(opwest_npu_emul_add(&dev, 1U, NULL, NULL, NULL, 1U), -ENOTSUP);
	EXPECT(calls, 0);
	functions.base.size = sizeof(functions) + 4U; /* a later version */
	EXPECT(relu(&dev), 0);
	EXPECT(calls, 1);
	return 0;
}
