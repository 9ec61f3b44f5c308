/* SPDX-License-Identifier: Apache-2.0 */
/* The host's port with captured output. */
#include <stdio.h>

#include "packed.h"

#define opwest_port_tvm_push host_push
#define opwest_port_tvm_pop host_pop
#define opwest_port_tvm_current host_current
#define opwest_port_tvm_log host_log
#undef stderr
#define stderr host_output

FILE *host_output;

#include "port_tvm_host.c"
