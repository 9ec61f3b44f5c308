/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Functions for operators that TVM compiled. Defined with CONFIG_OPWEST_TVM, and in host
 * builds.
 *
 * Names and signatures are TVM's: include/tvm/runtime/c_backend_api.h and c_runtime_api.h,
 * include/tvm/ffi/c_api.h. These functions use no heap.
 */
#ifndef OPWEST_TVM_BACKEND_H_
#define OPWEST_TVM_BACKEND_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The attribute of functions in TVM's C output. */
#ifndef TVM_DLL
#define TVM_DLL
#endif

/**
 * @brief Allocate from the workspace that the manifest declares for the operator.
 *
 * For the operator that runs on this thread. The device must be the processor (kDLCPU).
 *
 * @param device_type     kDLCPU
 * @param device_id       Ignored.
 * @param nbytes          Bytes.
 * @param dtype_code_hint Ignored.
 * @param dtype_bits_hint Ignored.
 *
 * @return Memory, aligned as the manifest declares; NULL if `workspace` is exhausted or not
 *         declared. The operator then fails, and run() returns -ENOMEM.
 */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
			       int dtype_bits_hint);

/**
 * @brief Free memory, in any order. The return of the operator frees the rest.
 *
 * @param device_type Ignored.
 * @param device_id   Ignored.
 * @param ptr         The return value of TVMBackendAllocWorkspace().
 *
 * @retval 0  Done.
 * @retval -1 It is not an allocation of this operator.
 */
int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

/** @brief Log the failure of an operator. The text is not stored. */
void TVMAPISetLastError(const char *msg);

/** @brief Log the failure of an operator: @p kind is an error class such as "TypeError". */
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

/** @brief Log the failure of an operator: @p num_parts strings, joined; NULL is skipped. */
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **message_parts,
				       int32_t num_parts);

/*
 * Objects of TVM's LLVM back end call these functions through variables, which a dynamic loader
 * would set. Their definitions are weak and NULL; the linker replaces them by these.
 */
extern void *(*const __TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
extern int (*const __TVMBackendFreeWorkspace)(int, int, void *);
extern void (*const __TVMAPISetLastError)(const char *);
extern void (*const __TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
extern void (*const __TVMFFIErrorSetRaisedFromCStrParts)(const char *, const char **, int32_t);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_TVM_BACKEND_H_ */
