/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the header of TVM up to 0.18, or current, in operators that it wrote. */
#include <opwest/tvm_backend.h>
#include <opwest/tvm_packed.h>
