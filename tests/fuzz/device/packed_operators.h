/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of operators is told, and what they tell: see packed_operators.c. */
#ifndef PACKED_OPERATORS_H_
#define PACKED_OPERATORS_H_

#include <opwest/port.h>
#include <opwest/registry.h>

/** The operator that is to be called. */
extern const struct opwest_operator *called;
/** What it is called with; NULL where run() calls. */
extern const struct opwest_value *given;
/** What operators decide by. */
extern struct source *input;
/** How many operators were called. */
extern int32_t entered;
/** What the runtime has to make of what the latest returned. */
extern int32_t wanted;
/** What waiting for the device returns. */
extern int32_t sync_code;
/** How many operators were launched and not waited for. */
extern size_t launches;
/** The devices of the model. */
extern const struct device npu, dma;

/** Whether a scalar is a float32 or float64. */
bool is_real(uint8_t dtype);

#endif
