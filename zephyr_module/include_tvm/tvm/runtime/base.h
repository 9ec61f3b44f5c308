/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces TVM's header in operators that it wrote. */
#include <opwest/tvm_backend.h>
#include <opwest/tvm_ffi.h>
