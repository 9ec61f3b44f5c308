/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces TVM's header in applications of microTVM, which define the function
 * (apache/tvm 0.8 to 0.18, include/tvm/runtime/crt/logging.h).
 */
#ifndef TVM_RUNTIME_CRT_LOGGING_H_
#define TVM_RUNTIME_CRT_LOGGING_H_

#ifdef __cplusplus
extern "C" {
#endif

void TVMLogf(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_LOGGING_H_ */
