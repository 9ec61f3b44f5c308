/* SPDX-License-Identifier: Apache-2.0 */
/* The header of the vendor-specific handle in the golden model "asynchronous". */
#pragma once

#include <stdint.h>

struct vendor_dsp {
	int32_t gain;
};

extern struct vendor_dsp vendor_dsp_0;
