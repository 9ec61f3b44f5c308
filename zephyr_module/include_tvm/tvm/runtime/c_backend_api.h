/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for the header of TVM up to 0.18, or of today, in operators that it wrote. */
#include <opwest/tvm_backend.h>
#include <opwest/tvm_packed.h>
