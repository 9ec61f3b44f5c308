/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces DLPack's header in operators that TVM wrote. */
#include <opwest/dlpack.h>
