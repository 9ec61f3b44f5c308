/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The calling convention `ffi`: that of tvm-ffi, in TVM since 0.21.
 *
 * Binary interface of include/tvm/ffi/c_api.h (apache/tvm-ffi 0.1, with TVM 0.27): TVMFFIAny,
 * TVMFFITypeIndex, TVMFFISafeCallType. If that header was included before, that one
 * applies.
 */
#ifndef OPWEST_TVM_FFI_H_
#define OPWEST_TVM_FFI_H_

#include <opwest/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TVM_FFI_C_API_H_
#define TVM_FFI_C_API_H_

/** The types of values. */
typedef enum {
	kTVMFFINone = 0,
	kTVMFFIInt = 1,
	kTVMFFIBool = 2,
	kTVMFFIFloat = 3,
	/** An opaque pointer. */
	kTVMFFIOpaquePtr = 4,
	kTVMFFIDataType = 5,
	kTVMFFIDevice = 6,
	/** DLTensor * */
	kTVMFFIDLTensorPtr = 7,
	/** The first index of objects, which are not supported. */
	kTVMFFIStaticObjectBegin = 64,
	kTVMFFITensor = 70,
} TVMFFITypeIndex;

/** A value with its type. */
typedef struct {
	/** TVMFFITypeIndex */
	int32_t type_index;
	/** 0 */
	uint32_t zero_padding;
	union {
		int64_t v_int64;
		double v_float64;
		/** With 32-bit pointers, the rest is 0. */
		void *v_ptr;
		const char *v_c_str;
		DLDataType v_dtype;
		DLDevice v_device;
		char v_bytes[8];
		uint64_t v_uint64;
	};
} TVMFFIAny;

/**
 * @brief An ffi operator.
 *
 * @param handle   Always NULL: opwest passes devices as arguments.
 * @param args     @p num_args arguments.
 * @param num_args The number of arguments.
 * @param result   Unused: operators have no result.
 *
 * @retval 0 Done.
 * @return Any other number: failure
 */
typedef int (*TVMFFISafeCallType)(void *handle, const TVMFFIAny *args, int32_t num_args,
				  TVMFFIAny *result);

#endif /* TVM_FFI_C_API_H_ */

#ifdef __cplusplus
}
#endif

OPWEST_STATIC_ASSERT(sizeof(TVMFFIAny) == 16, "TVMFFIAny");
OPWEST_STATIC_ASSERT(offsetof(TVMFFIAny, v_int64) == 8, "TVMFFIAny.v_int64");
OPWEST_STATIC_ASSERT(kTVMFFIOpaquePtr == 4 && kTVMFFIDLTensorPtr == 7, "TVMFFITypeIndex");

#endif /* OPWEST_TVM_FFI_H_ */
