/* SPDX-License-Identifier: Apache-2.0 */
#include "extra.h"

const int extra = 1;
