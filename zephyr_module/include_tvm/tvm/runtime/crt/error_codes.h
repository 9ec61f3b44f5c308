/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces TVM's header in operators that it wrote: return values of failures
 * (apache/tvm 0.11 to 0.18, include/tvm/runtime/crt/error_codes.h).
 */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

/** 256 times the category (platform 5, generated code 6, calls 8), plus a number. */
typedef enum {
	kTvmErrorNoError = 0,
	kTvmErrorPlatformCheckFailure = 0x500,
	kTvmErrorPlatformNoMemory = 0x503,
	kTvmErrorPlatformStackAllocBadFree = 0x505,
	kTvmErrorGeneratedInvalidStorageId = 0x600,
	kTvmErrorFunctionCallNumArguments = 0x800,
	kTvmErrorFunctionCallWrongArgType = 0x801,
	kTvmErrorFunctionCallNotImplemented = 0x802,
	kTvmErrorFunctionCallInvalidArg = 0x803,
} tvm_crt_error_t;

#endif /* TVM_RUNTIME_CRT_ERROR_CODES_H_ */
