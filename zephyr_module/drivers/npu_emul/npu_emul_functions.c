/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for operators of bundles. */
#include <opwest/npu_emul_functions.h>

const struct opwest_npu_emul_functions opwest_npu_emul_functions = {
	.base = {OPWEST_NPU_EMUL_FUNCTIONS_ID, sizeof(struct opwest_npu_emul_functions)},
	.dense = opwest_npu_emul_dense,
	.conv2d = opwest_npu_emul_conv2d,
	.add = opwest_npu_emul_add,
	.relu = opwest_npu_emul_relu,
	.finish = opwest_npu_emul_finish,
};
