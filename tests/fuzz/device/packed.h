/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACKED_H_
#define PACKED_H_

#include <stdbool.h>

#include <opwest/port.h>
#include <opwest/registry.h>
#include <opwest/tvm_workspace.h>

#include "source.h"

/** Choose the port: Zephyr's or the host's. */
void choose_port(bool zephyr);

/** Allocate and free memory of this thread's current record, compared with a model. */
bool allocate(struct source *from);

/** Enter, leave, allocate and log on several threads, in any order. */
void threads_at_random(struct source *from);

/* The two ports: see tvm_workspace.h. */
void host_push(struct opwest_tvm_workspace *workspace);
void host_pop(struct opwest_tvm_workspace *workspace);
struct opwest_tvm_workspace *host_current(void);
void host_log(const char *kind, const char *const *parts, int32_t count);
void zephyr_push(struct opwest_tvm_workspace *workspace);
void zephyr_pop(struct opwest_tvm_workspace *workspace);
struct opwest_tvm_workspace *zephyr_current(void);
void zephyr_log(const char *kind, const char *const *parts, int32_t count);
extern FILE *host_output;

/* The inputs and outputs of a call of operators: see packed_operators.c. */

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
/* What sync() returns, after it has returned -EINTR for each wake. */
extern int32_t sync_code, wakes;
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
