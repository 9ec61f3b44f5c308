/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>

#include <opwest/tvm_workspace.h>

static _Thread_local struct opwest_tvm_workspace *current;

void opwest_port_tvm_push(struct opwest_tvm_workspace *workspace)
{
	workspace->thread = NULL; /* each thread has its own list */
	workspace->next = current;
	current = workspace;
}

void opwest_port_tvm_pop(struct opwest_tvm_workspace *workspace)
{
	current = workspace->next;
}

struct opwest_tvm_workspace *opwest_port_tvm_current(void)
{
	return current;
}

void opwest_port_tvm_log(const char *kind, const char *const *parts, int32_t count)
{
	fprintf(stderr, "opwest: operator: %s%s", kind != NULL ? kind : "",
		kind != NULL ? ": " : "");
	for (int32_t i = 0; i < count; i++) {
		fputs(parts[i] != NULL ? parts[i] : "", stderr);
	}
	fputc('\n', stderr);
}
