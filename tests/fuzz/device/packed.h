/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACKED_H_
#define PACKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <opwest/tvm_workspace.h>

#include "source.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);           \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

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

#endif
