/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr's port with stubs of threads and logging. */
#include "packed.h"

#define opwest_port_tvm_push zephyr_push
#define opwest_port_tvm_pop zephyr_pop
#define opwest_port_tvm_current zephyr_current
#define opwest_port_tvm_log zephyr_log

#include "port_tvm_zephyr.c"
