/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared declarations of the sources of model several_targets: operators and constants. Generated
 * by opwest.
 */
#ifndef OPWEST_MODEL_SEVERAL_TARGETS_INTERNAL_H_
#define OPWEST_MODEL_SEVERAL_TARGETS_INTERNAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/model.h>
#include <opwest/port.h>

OPWEST_STATIC_ASSERT(OPWEST_METADATA_VERSION == 8,
	"generated for another opwest runtime: generate again");
OPWEST_STATIC_ASSERT(sizeof(float) == 4 && sizeof(double) == 8, "float32 and float64 must be IEEE");
OPWEST_STATIC_ASSERT((uint8_t)-1 == 255, "a byte has 8 bits");

#ifdef __cplusplus
extern "C" {
#endif

/* Operators. */
int32_t several_targets__scale_impl(const int16_t *, const int16_t *, const uint8_t *, int16_t *);
int32_t several_targets__shift(const int16_t *, uint8_t, int16_t *);

/* Constants: see constants.S. */
extern const int16_t several_targets_constant_bias[4];
extern const uint8_t several_targets_constant_mask[4];

/* The operators' signatures, in the manifest's order. */
extern const struct opwest_operator several_targets_operators[2];

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_MODEL_SEVERAL_TARGETS_INTERNAL_H_ */
