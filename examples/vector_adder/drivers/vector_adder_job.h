/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What a job of this device is: a descriptor that the device reads by DMA.
 */
#ifndef VECTOR_ADDER_JOB_H_
#define VECTOR_ADDER_JOB_H_

#include <stdint.h>

#include <opwest/accelerator.h>
#include <opwest/model.h>

/** The cost of another program: none, a descriptor contains its program. */
#define JOB_SWITCHING OPWEST_SWITCH_FREE

/** The largest cache line. A descriptor shares its lines with nothing that the processor writes. */
#define JOB_ALIGN 128

/** A descriptor: addresses of the device. */
struct vector_adder_job {
	OPWEST_ALIGNED(JOB_ALIGN) uint64_t program;
	uint64_t a;
	uint64_t b;
	uint64_t result;
	uint32_t count;
};

#endif /* VECTOR_ADDER_JOB_H_ */
