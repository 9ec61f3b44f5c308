/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces TVM's header in applications that define these functions for microTVM's runtime
 * (apache/tvm 0.8 to 0.18, include/tvm/runtime/crt/platform.h). opwest calls none of them.
 */
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/dlpack.h>

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

void TVMPlatformAbort(tvm_crt_error_t code);
size_t TVMPlatformFormatMessage(char *out, size_t size, const char *format, va_list args);
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t size, DLDevice device, void **out);
tvm_crt_error_t TVMPlatformMemoryFree(void *memory, DLDevice device);
tvm_crt_error_t TVMPlatformTimerStart(void);
tvm_crt_error_t TVMPlatformTimerStop(double *seconds);
tvm_crt_error_t TVMPlatformBeforeMeasurement(void);
tvm_crt_error_t TVMPlatformAfterMeasurement(void);
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t size);
tvm_crt_error_t TVMPlatformInitialize(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PLATFORM_H_ */
