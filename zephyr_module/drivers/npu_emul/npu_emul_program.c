/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs, as make_program.py writes them. All numbers are little endian.
 *
 *   header, 16 bytes                     kernel, 16 bytes, repeated
 *    0  "ONPU"                            0  u16  the number for operators
 *    4  u16  version, 1                   2  u8   kind: 1 dense, 2 conv2d, 3 add, 4 relu
 *    6  u16  kernels, 1 to 256            3  u8   shift, 0 to 47
 *    8  u32  bytes of the whole program   4  i32  multiplier, 1 at least
 *   12  u32  0                            8  i8   input_zero
 *                                         9  i8   output_zero
 *                                        10  i8   least
 *                                        11  i8   most, not below least
 *                                        12  u32  0
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "npu_emul_internal.h"

#define HEADER_SIZE 16U
#define KERNEL_SIZE 16U
#define VERSION     1U
#define MAX_KERNELS 256U

/* With this limit no sum overflows 64 bits: |sum| < 2^32, times 2^31, plus 2^46 to round. */
#define MAX_SHIFT 47U

static uint16_t u16_at(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] | (uint32_t)bytes[1] << 8);
}

static uint32_t u32_at(const uint8_t *bytes)
{
	return u16_at(bytes) | (uint32_t)u16_at(bytes + 2) << 16;
}

static const uint8_t *kernel_at(const struct opwest_program *program, uint32_t index)
{
	return program->data + HEADER_SIZE + index * KERNEL_SIZE;
}

static uint32_t kernels_of(const struct opwest_program *program)
{
	return u16_at(program->data + 6);
}

static bool is_header_good(const struct opwest_program *program)
{
	const uint8_t *const data = program->data;
	uint32_t count;

	if (program->size < HEADER_SIZE || memcmp(data, "ONPU", 4) != 0) {
		return false;
	}
	count = kernels_of(program);
	return u16_at(data + 4) == VERSION && count >= 1 && count <= MAX_KERNELS &&
	       u32_at(data + 8) == program->size && u32_at(data + 12) == 0 &&
	       program->size == HEADER_SIZE + count * KERNEL_SIZE;
}

static bool is_kernel_good(const uint8_t *bytes)
{
	return bytes[2] >= OPWEST_NPU_EMUL_DENSE && bytes[2] <= OPWEST_NPU_EMUL_RELU &&
	       bytes[3] <= MAX_SHIFT && (int32_t)u32_at(bytes + 4) >= 1 &&
	       (int8_t)bytes[10] <= (int8_t)bytes[11] && u32_at(bytes + 12) == 0;
}

int opwest_npu_emul_check(const struct opwest_program *program)
{
	if (program == NULL || program->data == NULL || !is_header_good(program)) {
		return -EINVAL;
	}
	for (uint32_t i = 0; i < kernels_of(program); i++) {
		const uint8_t *const bytes = kernel_at(program, i);

		if (!is_kernel_good(bytes)) {
			return -EINVAL;
		}
		for (uint32_t j = 0; j < i; j++) {
			if (u16_at(kernel_at(program, j)) == u16_at(bytes)) {
				return -EINVAL;
			}
		}
	}
	return 0;
}

int opwest_npu_emul_find(const struct opwest_program *program, enum opwest_npu_emul_kind kind,
			 uint16_t id, struct opwest_npu_emul_kernel *kernel)
{
	for (uint32_t i = 0; i < kernels_of(program); i++) {
		const uint8_t *const bytes = kernel_at(program, i);

		if (u16_at(bytes) == id && bytes[2] == kind) {
			*kernel = (struct opwest_npu_emul_kernel){
				.multiplier = (int32_t)u32_at(bytes + 4),
				.shift = bytes[3],
				.input_zero = (int8_t)bytes[8],
				.output_zero = (int8_t)bytes[9],
				.least = (int8_t)bytes[10],
				.most = (int8_t)bytes[11],
			};
			return 0;
		}
	}
	return -ENOTSUP;
}
