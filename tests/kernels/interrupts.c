/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts between the instructions of candidates. The handler changes all that the ABI allows, and memory below. */
#include <stdint.h>

#include "image.h"

#define SYST_CSR (*(volatile uint32_t *)0xe000e010)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018)
#define BYTES 1024

static uint32_t ticks;

void before_candidates(void)
{
	SYST_RVR = 3;
	SYST_CVR = 0;
	SYST_CSR = 7; /* the clock of the processor, interrupt, enabled */
}

void tick(void)
{
	volatile uint32_t below[BYTES / 4];

	for (uint32_t i = 0; i < BYTES / 4; i += 8) {
		below[i] = 0xdeadbeef;
	}
	/* Another distance to the next interrupt: other instructions. */
	SYST_RVR = 3 + ticks++ % 11;
	__asm__ volatile("mvn r0, r0\n"
			 "mvn r1, r1\n"
			 "mvn r2, r2\n"
			 "mvn r3, r3\n"
			 "mvn r12, r12\n"
			 "adds r0, r0, r1\n"
			 :
			 :
			 : "r0", "r1", "r2", "r3", "r12", "cc", "memory");
#ifdef __ARM_FEATURE_DSP
	__asm__ volatile("uadd8 r0, r1, r2" : : : "r0"); /* the GE flags */
#endif
#if __ARM_FEATURE_MVE
	__asm__ volatile("vmov.i32 q0, #0\n"
			 "vmov.i32 q1, #0\n"
			 "vmov.i32 q2, #0\n"
			 "vmov.i32 q3, #0\n"
			 "vctp.8 r1\n"
			 "movs r2, #40\n"
			 "dlstp.8 lr, r2\n"
			 "1: vadd.i8 q0, q0, q1\n"
			 "letp lr, 1b\n"
			 :
			 :
			 : "q0", "q1", "q2", "q3", "r2", "lr", "cc", "memory");
#elif defined(__ARM_FP)
	__asm__ volatile("vmov s0, r0\n"
			 "vmov s7, r1\n"
			 "vmov s15, r2\n"
			 :
			 :
			 : "s0", "s7", "s15", "memory");
#endif
}
