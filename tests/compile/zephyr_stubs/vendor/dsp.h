/* SPDX-License-Identifier: Apache-2.0 */
/* The header of the vendor-specific handle in the golden model "asynchronous". */
#ifndef STUB_VENDOR_DSP_H_
#define STUB_VENDOR_DSP_H_

#include <stdint.h>

struct vendor_dsp {
	int32_t gain;
};

extern struct vendor_dsp vendor_dsp_0;

#endif /* STUB_VENDOR_DSP_H_ */
