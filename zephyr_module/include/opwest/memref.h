/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The descriptors of memrefs in MLIR's C interface.
 *
 * `struct opwest_memref_N` is StridedMemRefType<T, N> of mlir/ExecutionEngine/CRunnerUtils.h, as
 * documented under "C-compatible wrapper emission" (mlir.llvm.org/docs/TargetLLVMIR):
 * `{ T *basePtr; T *data; intptr_t offset; intptr_t sizes[N]; intptr_t strides[N]; }`. On 32-bit
 * targets the passes of MLIR need the option index-bitwidth=32.
 */
#ifndef OPWEST_MEMREF_H_
#define OPWEST_MEMREF_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The descriptor of a memref without dimensions. */
struct opwest_memref_0 {
	/** The begin of the allocation. */
	void *allocated;
	/** The data, aligned. */
	void *aligned;
	/** Elements from `aligned` to the first element. */
	intptr_t offset;
};

#define OPWEST_MEMREF_DEFINE(rank)                                                                 \
	struct opwest_memref_##rank {                                                              \
		void *allocated;                                                                   \
		void *aligned;                                                                     \
		intptr_t offset;                                                                   \
		/* Outermost dimension first. */                                                   \
		intptr_t sizes[rank];                                                              \
		/* In elements. */                                                                 \
		intptr_t strides[rank];                                                            \
	}

OPWEST_MEMREF_DEFINE(1);
OPWEST_MEMREF_DEFINE(2);
OPWEST_MEMREF_DEFINE(3);
OPWEST_MEMREF_DEFINE(4);
OPWEST_MEMREF_DEFINE(5);
OPWEST_MEMREF_DEFINE(6);
OPWEST_MEMREF_DEFINE(7);
OPWEST_MEMREF_DEFINE(8);
OPWEST_MEMREF_DEFINE(9);
OPWEST_MEMREF_DEFINE(10);
OPWEST_MEMREF_DEFINE(11);
OPWEST_MEMREF_DEFINE(12);
OPWEST_MEMREF_DEFINE(13);
OPWEST_MEMREF_DEFINE(14);
OPWEST_MEMREF_DEFINE(15);
OPWEST_MEMREF_DEFINE(16);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_MEMREF_H_ */
