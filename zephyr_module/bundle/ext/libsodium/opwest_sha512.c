/* SPDX-License-Identifier: Apache-2.0 */
#include "opwest_sha512.h"

#include "hash_sha512_cp.c"
