/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs and outputs of a call of operators: see packed_operators.c. */
#ifndef PACKED_OPERATORS_H_
#define PACKED_OPERATORS_H_

#include <opwest/port.h>
#include <opwest/registry.h>

/** The operator that is to be called. */
extern const struct opwest_operator *called;
/** Its arguments; NULL for calls by run(). */
extern const struct opwest_value *given;
/** The input of the operators' decisions. */
extern struct source *input;
/** The number of called operators. */
extern int32_t entered;
/** The expected conversion of the latest return value by the runtime. */
extern int32_t expected;
/** The value that the latest operator returned, bytes; a size of 0 is none. */
extern uint8_t returned[8];
extern size_t returned_size;
/** The result of a wait for the device. */
extern int32_t sync_code;
/** The number of launched operators before a wait. */
extern size_t launches;
/** The devices of the model. */
extern const struct device npu, dma;

/** Check that this operator is to be called: run() calls operators in the order of its steps. */
void is_called(size_t index);

/**
 * Do the work of an operator with valid arguments: allocate, return a status.
 *
 * @param failed whether an allocation failed
 */
int32_t decide(bool *failed);

/** Whether a scalar is a float32 or float64. */
bool is_real(uint8_t dtype);

#endif
