/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for DLPack's header in operators that TVM wrote. */
#include <opwest/dlpack.h>
