/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Comparison of outputs with expected values, for tests.
 */
#ifndef OPWEST_COMPARE_H_
#define OPWEST_COMPARE_H_

#include <stdint.h>

#include <opwest/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The tolerance of an element: absolute + relative * |expected|. Both 0: bit for bit.
 */
struct opwest_tolerance {
	double absolute;
	double relative;
};

/**
 * @brief Compare elements with the expected ones.
 *
 * With a tolerance, NaN equals any NaN, an infinity only itself, and -0 equals 0.
 *
 * @param dtype     The element type.
 * @param got       The elements; they need not be aligned.
 * @param expected  The expected elements; they need not be aligned.
 * @param count     The number of elements.
 * @param tolerance The tolerance.
 * @param first     Set to the index of the first different element, if any; may be NULL.
 *
 * @return The number of elements outside of the tolerance
 */
uint32_t opwest_compare(uint8_t dtype, const void *got, const void *expected, uint32_t count,
			struct opwest_tolerance tolerance, uint32_t *first);

/**
 * @brief Convert an element of a floating-point type.
 *
 * @param dtype   The element type.
 * @param element The element; it need not be aligned.
 *
 * @return The value, which may be infinity or NaN
 */
double opwest_float_value(uint8_t dtype, const void *element);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_COMPARE_H_ */
