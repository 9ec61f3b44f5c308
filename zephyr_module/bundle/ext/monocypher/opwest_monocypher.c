/* SPDX-License-Identifier: Apache-2.0 */
#include "opwest_monocypher.h"

#include "monocypher.c"
