/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The calling convention `packed`: that of TVM's C runtime, as microTVM had it.
 *
 * Binary interface of apache/tvm 0.11 to 0.18: include/tvm/runtime/c_runtime_api.h (TVMValue,
 * TVMArgTypeCode), include/tvm/runtime/c_backend_api.h (TVMBackendPackedCFunc),
 * include/tvm/runtime/crt/func_registry.h and module.h (the system library). If TVM's own header
 * was included before, that one applies.
 */
#ifndef OPWEST_TVM_PACKED_H_
#define OPWEST_TVM_PACKED_H_

#include <opwest/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

/** The types of arguments. */
typedef enum {
	kTVMArgInt = kDLInt,
	kTVMArgFloat = kDLFloat,
	/** An opaque pointer. */
	kTVMOpaqueHandle = 3,
	kTVMNullptr = 4,
	kTVMDataType = 5,
	kDLDevice = 6,
	/** DLTensor * */
	kTVMDLTensorHandle = 7,
} TVMArgTypeCode;

/** An argument. */
typedef union {
	int64_t v_int64;
	double v_float64;
	void *v_handle;
	const char *v_str;
	DLDataType v_type;
	DLDevice v_device;
} TVMValue;

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */

#ifndef TVM_RUNTIME_C_BACKEND_API_H_
/**
 * @brief A packed operator.
 *
 * @param args            @p num_args arguments.
 * @param type_codes      TVMArgTypeCode of each; read only.
 * @param num_args        The number of arguments.
 * @param out_ret_value   Unused: operators have no result.
 * @param out_ret_tcode   Its type code.
 * @param resource_handle Always NULL: opwest passes devices as arguments.
 *
 * @retval 0 Done.
 * @return Any other number: failure
 */
typedef int (*TVMBackendPackedCFunc)(TVMValue args[], int type_codes[], int num_args,
				     TVMValue out_ret_value[1], int *out_ret_tcode,
				     void *resource_handle);
#endif

#ifndef TVM_RUNTIME_CRT_FUNC_REGISTRY_H_
#define TVM_RUNTIME_CRT_FUNC_REGISTRY_H_

/** Functions by name. */
typedef struct TVMFuncRegistry {
	/**
	 * Their count (uint16_t in the target's byte order), then their names, each ended by NUL,
	 * then a NUL.
	 */
	const char *names;
	/** The functions, in the order of the names. */
	const TVMBackendPackedCFunc *funcs;
} TVMFuncRegistry;

#endif /* TVM_RUNTIME_CRT_FUNC_REGISTRY_H_ */

#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

/** A library. */
typedef struct TVMModule {
	const TVMFuncRegistry *registry;
} TVMModule;

/**
 * @brief Return the operators of this image in microTVM's format.
 *
 * Defined if a manifest has `compat: tvm-crt`.
 *
 * @return The library, constant
 */
const TVMModule *TVMSystemLibEntryPoint(void);

#endif /* TVM_RUNTIME_CRT_MODULE_H_ */

#ifdef __cplusplus
}
#endif

OPWEST_STATIC_ASSERT(sizeof(TVMValue) == 8, "TVMValue");
OPWEST_STATIC_ASSERT(sizeof(int) == 4, "type codes are 32 bits");
OPWEST_STATIC_ASSERT(kTVMOpaqueHandle == 3 && kTVMDLTensorHandle == 7, "TVMArgTypeCode");
OPWEST_STATIC_ASSERT(sizeof(TVMFuncRegistry) == 2 * sizeof(void *), "TVMFuncRegistry");

#endif /* OPWEST_TVM_PACKED_H_ */
