/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The functions of the emulated NPU for operators of bundles: those of opwest/npu_emul.h.
 */
#ifndef OPWEST_NPU_EMUL_FUNCTIONS_H_
#define OPWEST_NPU_EMUL_FUNCTIONS_H_

#include <opwest/accelerator_functions.h>
#include <opwest/npu_emul.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The identifier of struct opwest_npu_emul_functions. */
#define OPWEST_NPU_EMUL_FUNCTIONS_ID OPWEST_ACCELERATOR_FUNCTIONS_ID('N', 'P', 'U', 'E')

/** The functions of the driver. */
struct opwest_npu_emul_functions {
	struct opwest_accelerator_functions base;
	int (*dense)(const struct device *dev, uint16_t kernel, const int8_t *x,
		     const int8_t *weights, const int32_t *bias, int8_t *y, uint16_t rows,
		     uint16_t inputs, uint16_t outputs);
	int (*conv2d)(const struct device *dev, uint16_t kernel, const int8_t *x,
		      const int8_t *weights, const int32_t *bias, int8_t *y,
		      const struct opwest_npu_emul_conv2d_shape *shape);
	int (*add)(const struct device *dev, uint16_t kernel, const int8_t *a, const int8_t *b,
		   int8_t *y, uint32_t count);
	int (*relu)(const struct device *dev, uint16_t kernel, const int8_t *x, int8_t *y,
		    uint32_t count);
	int (*finish)(const struct device *dev, int enqueued, int32_t timeout_ms);
};

/** The functions of this firmware's driver. */
extern const struct opwest_npu_emul_functions opwest_npu_emul_functions;

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_NPU_EMUL_FUNCTIONS_H_ */
