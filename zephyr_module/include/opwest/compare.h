/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Comparing what a model computes with what it should: for tests.
 */
#ifndef OPWEST_COMPARE_H_
#define OPWEST_COMPARE_H_

#include <stdint.h>

#include <opwest/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * How far an element may be from the wanted one: absolute + relative * |wanted|. Both 0: bit for bit.
 */
struct opwest_tolerance {
	double absolute;
	double relative;
};

/**
 * @brief Compare elements with what they should be.
 *
 * With a tolerance a NaN fits any NaN, an infinity only itself, and -0 fits 0.
 *
 * @param dtype     The element type.
 * @param got       The elements; they need not be aligned.
 * @param wanted    What they should be; they need not be aligned.
 * @param count     How many.
 * @param tolerance How far they may be apart.
 * @param first     The index of the first element that does not fit goes here, if any; may be NULL.
 *
 * @return How many elements do not fit
 */
uint32_t opwest_compare(uint8_t dtype, const void *got, const void *wanted, uint32_t count,
			struct opwest_tolerance tolerance, uint32_t *first);

/**
 * @brief Tell the value of an element of a floating-point type.
 *
 * @param dtype   The element type.
 * @param element The element; it need not be aligned.
 *
 * @return The same number, infinity or NaN
 */
double opwest_float_value(uint8_t dtype, const void *element);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_COMPARE_H_ */
