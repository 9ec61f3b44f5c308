/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces TVM's header in applications of microTVM: memory in last-in, first-out order
 * (apache/tvm 0.8 to 0.18, include/tvm/runtime/crt/stack_allocator.h). opwest plans its own memory
 * and uses none of this.
 */
#ifndef TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>

#include <tvm/runtime/crt/error_codes.h>

#ifndef TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES
#define TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES 16
#endif

typedef struct {
	uint8_t *next_alloc;
	uint8_t *workspace;
	size_t workspace_size;
} tvm_workspace_t;

static inline tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *workspace, uint8_t *memory,
						      size_t size)
{
	workspace->next_alloc = memory;
	workspace->workspace = memory;
	workspace->workspace_size = size;
	return kTvmErrorNoError;
}

static inline tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *workspace, int32_t size,
							  void **out)
{
	const size_t used = (size_t)(workspace->next_alloc - workspace->workspace);
	const size_t whole = ((size_t)size + TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - 1U) /
			     TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES * TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES;

	if (size < 0 || whole > workspace->workspace_size - used) {
		*out = NULL;
		return kTvmErrorPlatformNoMemory;
	}
	*out = workspace->next_alloc;
	workspace->next_alloc += whole;
	return kTvmErrorNoError;
}

static inline tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *workspace, void *memory)
{
	const uint8_t *const start = (const uint8_t *)memory;

	if (start < workspace->workspace || start >= workspace->next_alloc) {
		return kTvmErrorPlatformStackAllocBadFree;
	}
	workspace->next_alloc = (uint8_t *)memory;
	return kTvmErrorNoError;
}

#endif /* TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_ */
