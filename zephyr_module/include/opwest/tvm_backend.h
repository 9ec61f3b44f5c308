/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What operators that TVM compiled may call. Defined with CONFIG_OPWEST_TVM, and in host
 * builds.
 *
 * Names and signatures are TVM's: include/tvm/runtime/c_backend_api.h and c_runtime_api.h,
 * include/tvm/ffi/c_api.h. Nothing here uses a heap.
 */
#ifndef OPWEST_TVM_BACKEND_H_
#define OPWEST_TVM_BACKEND_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What TVM's C output puts before functions. */
#ifndef TVM_DLL
#define TVM_DLL
#endif

/**
 * @brief Take memory of the workspace that the manifest declares for the operator.
 *
 * For the operator that runs on this thread. The device must be the processor (kDLCPU).
 *
 * @param device_type     kDLCPU
 * @param device_id       Not looked at.
 * @param nbytes          Bytes.
 * @param dtype_code_hint Not looked at.
 * @param dtype_bits_hint Not looked at.
 *
 * @return Memory, aligned as the manifest says; NULL when `workspace` is used up, or was not
 *         declared. The operator then fails, and run() returns -ENOMEM.
 */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
			       int dtype_bits_hint);

/**
 * @brief Give memory back, in any order. What is not given back is when the operator returns.
 *
 * @param device_type Not looked at.
 * @param device_id   Not looked at.
 * @param ptr         What TVMBackendAllocWorkspace() returned.
 *
 * @retval 0  Done.
 * @retval -1 It is none of this operator's allocations.
 */
int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

/** @brief Log why an operator failed: nothing keeps the text. */
void TVMAPISetLastError(const char *msg);

/** @brief Log why an operator failed: @p kind is an error class such as "TypeError". */
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

/**
 * @brief Log why an operator failed: @p num_parts strings one behind the other; NULL is left out.
 */
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **message_parts,
				       int32_t num_parts);

/*
 * Objects that TVM compiles to LLVM code reach these functions through variables, which a dynamic
 * loader would set. Theirs are weak and NULL: these take their place when the image is linked.
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
