/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Operators of the accelerator vnd,vector-adder.
 *
 * A program has 16 bytes: the magic "VADD", the factor, and zeros.
 */
#ifndef VECTOR_ADDER_H_
#define VECTOR_ADDER_H_

#include <stdint.h>

#include <opwest/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Enqueue `result[i] = a[i] + factor * b[i]`, limited to -128..127.
 *
 * @param a      count numbers.
 * @param b      count numbers.
 * @param result count numbers; equal to a or b, or without overlap.
 * @param count  At least 1.
 * @param launch The launch, with a program.
 *
 * @retval 0       The job is in the queue.
 * @retval -EAGAIN The queue is full.
 * @retval -EINVAL The count is not positive.
 * @retval -EPERM  The device has no owner, or no program.
 */
int32_t vector_adder_add(const int8_t *a, const int8_t *b, int8_t *result, int32_t count,
			 const struct opwest_launch *launch);

#ifdef __cplusplus
}
#endif

#endif /* VECTOR_ADDER_H_ */
