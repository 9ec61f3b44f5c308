/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the image of a bundle: the functions of operators, which call the firmware's driver. */
#include <errno.h>
#include <stddef.h>

#include <opwest/npu_emul_functions.h>

static const struct opwest_npu_emul_functions *functions(const struct device *dev)
{
	return (const struct opwest_npu_emul_functions *)opwest_accelerator_functions(
		dev, OPWEST_NPU_EMUL_FUNCTIONS_ID, sizeof(struct opwest_npu_emul_functions));
}

int opwest_npu_emul_dense(const struct device *dev, uint16_t kernel, const int8_t *x,
			  const int8_t *weights, const int32_t *bias, int8_t *y, uint16_t rows,
			  uint16_t inputs, uint16_t outputs)
{
	const struct opwest_npu_emul_functions *const driver = functions(dev);

	return driver == NULL
		       ? -ENOTSUP
		       : driver->dense(dev, kernel, x, weights, bias, y, rows, inputs, outputs);
}

int opwest_npu_emul_conv2d(const struct device *dev, uint16_t kernel, const int8_t *x,
			   const int8_t *weights, const int32_t *bias, int8_t *y,
			   const struct opwest_npu_emul_conv2d_shape *shape)
{
	const struct opwest_npu_emul_functions *const driver = functions(dev);

	return driver == NULL ? -ENOTSUP : driver->conv2d(dev, kernel, x, weights, bias, y, shape);
}

int opwest_npu_emul_add(const struct device *dev, uint16_t kernel, const int8_t *a, const int8_t *b,
			int8_t *y, uint32_t count)
{
	const struct opwest_npu_emul_functions *const driver = functions(dev);

	return driver == NULL ? -ENOTSUP : driver->add(dev, kernel, a, b, y, count);
}

int opwest_npu_emul_relu(const struct device *dev, uint16_t kernel, const int8_t *x, int8_t *y,
			 uint32_t count)
{
	const struct opwest_npu_emul_functions *const driver = functions(dev);

	return driver == NULL ? -ENOTSUP : driver->relu(dev, kernel, x, y, count);
}

int opwest_npu_emul_finish(const struct device *dev, int enqueued, int32_t timeout_ms)
{
	const struct opwest_npu_emul_functions *const driver = functions(dev);

	return driver == NULL ? -ENOTSUP : driver->finish(dev, enqueued, timeout_ms);
}
