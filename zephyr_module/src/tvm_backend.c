/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <opwest/dlpack.h>
#include <opwest/tvm_backend.h>
#include <opwest/tvm_workspace.h>

void opwest_tvm_enter(struct opwest_tvm_workspace *workspace, uint8_t *memory, uint32_t units,
		      uint32_t shift)
{
	workspace->memory = memory;
	workspace->units = units;
	workspace->used = 0U;
	workspace->shift = shift;
	workspace->exhausted = 0U;
	memset(memory + ((size_t)units << shift), 0, 2U * ((units + 7U) / 8U));
	opwest_port_tvm_push(workspace);
}

int32_t opwest_tvm_leave(struct opwest_tvm_workspace *workspace, int32_t code)
{
	opwest_port_tvm_pop(workspace);
	return code != 0 && workspace->exhausted != 0U ? -ENOMEM : opwest_tvm_code(code);
}

int32_t opwest_tvm_code(int32_t code)
{
	return code == -1 ? -EIO : code;
}

static void complain(const char *function, const char *what)
{
	const char *const parts[] = {function, ": ", what};

	opwest_port_tvm_log(NULL, parts, 3);
}

/* The position of the bit for the begin of an allocation at a unit, freed or not. */
static uint8_t *begins(const struct opwest_tvm_workspace *workspace, uint32_t unit)
{
	return workspace->memory + ((size_t)workspace->units << workspace->shift) + unit / 8U;
}

/* The position of the bit for an allocation that is not freed. */
static uint8_t *lives(const struct opwest_tvm_workspace *workspace, uint32_t unit)
{
	return begins(workspace, unit) + (workspace->units + 7U) / 8U;
}

static uint8_t bit(uint32_t unit)
{
	return (uint8_t)(1U << (unit % 8U));
}

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
			       int dtype_bits_hint)
{
	struct opwest_tvm_workspace *const workspace = opwest_port_tvm_current();

	(void)device_id;
	(void)dtype_code_hint;
	(void)dtype_bits_hint;
	if (workspace == NULL) {
		complain(__func__, "missing `workspace` in the manifest");
		return NULL;
	}

	const uint32_t unit = workspace->used;
	const uint64_t most = (uint64_t)(workspace->units - unit) << workspace->shift;

	if (device_type != kDLCPU || nbytes > most || most == 0U) {
		workspace->exhausted = 1U;
		complain(__func__, device_type != kDLCPU
					   ? "memory of a device requested"
					   : "`workspace` in the manifest is too small");
		return NULL;
	}

	const uint32_t taken =
		(uint32_t)((nbytes + ((1U << workspace->shift) - 1U)) >> workspace->shift);

	*begins(workspace, unit) |= bit(unit);
	*lives(workspace, unit) |= bit(unit);
	workspace->used += taken > 0U ? taken : 1U;
	return workspace->memory + ((size_t)unit << workspace->shift);
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
	struct opwest_tvm_workspace *const workspace = opwest_port_tvm_current();

	(void)device_type;
	(void)device_id;
	if (workspace == NULL) {
		return -1;
	}

	/* Wraps to a large number if the pointer is before the first unit. */
	const uintptr_t offset = (uintptr_t)ptr - (uintptr_t)workspace->memory;
	const uint32_t unit = (uint32_t)(offset >> workspace->shift);

	if (offset >= (uintptr_t)workspace->used << workspace->shift ||
	    offset != (uintptr_t)unit << workspace->shift ||
	    (*lives(workspace, unit) & bit(unit)) == 0U) {
		complain(__func__, "this memory is not allocated");
		return -1;
	}
	*lives(workspace, unit) &= (uint8_t)~bit(unit);

	/* Release the last allocations as long as they are freed. */
	for (uint32_t last = workspace->used; last-- > 0U;) {
		if ((*begins(workspace, last) & bit(last)) == 0U) {
			continue;
		}
		if ((*lives(workspace, last) & bit(last)) != 0U) {
			break;
		}
		*begins(workspace, last) &= (uint8_t)~bit(last);
		workspace->used = last;
	}
	return 0;
}

void TVMAPISetLastError(const char *msg)
{
	opwest_port_tvm_log(NULL, &msg, 1);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
{
	opwest_port_tvm_log(kind, &message, 1);
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **message_parts,
				       int32_t num_parts)
{
	opwest_port_tvm_log(kind, (const char *const *)message_parts, num_parts);
}

void *(*const __TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = TVMBackendAllocWorkspace;
int (*const __TVMBackendFreeWorkspace)(int, int, void *) = TVMBackendFreeWorkspace;
void (*const __TVMAPISetLastError)(const char *) = TVMAPISetLastError;
void (*const __TVMFFIErrorSetRaisedFromCStr)(const char *,
					     const char *) = TVMFFIErrorSetRaisedFromCStr;
void (*const __TVMFFIErrorSetRaisedFromCStrParts)(const char *, const char **,
						  int32_t) = TVMFFIErrorSetRaisedFromCStrParts;
