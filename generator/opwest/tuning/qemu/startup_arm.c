/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end (by semihosting) of an image without an operating system on QEMU's Arm boards. */
#include <stdint.h>

#include "image.h"

static uint32_t call_host(uint32_t operation, const void *argument)
{
	register uint32_t r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = argument;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

void print(const char *text)
{
	call_host(0x04, text); /* SYS_WRITE0 */
}

static __attribute__((noreturn)) void leave(uintptr_t reason)
{
	call_host(0x18, (const void *)reason); /* SYS_EXIT */
	for (;;) {
	}
}

static __attribute__((noreturn)) void fault(void)
{
	print("fault\n");
	leave(0x20023); /* ADP_Stopped_RunTimeErrorUnknown */
}

__attribute__((weak)) void before_candidates(void)
{
}

__attribute__((weak)) void tick(void)
{
}

__attribute__((noreturn, used)) void reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
	*(volatile uint32_t *)0xe000ed88 |= 0xf00000; /* CPACR: FPU and vectors */
	__asm__ volatile("dsb\n isb" : : : "memory");
#endif
	before_candidates();
	measure();
	leave(0x20026); /* ADP_Stopped_ApplicationExit */
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
	stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
	(const void *)fault, (const void *)fault, (const void *)fault, [15] = (const void *)tick,
};

/* The plugin counts the instructions between the blx and the pop. */
__asm__(".syntax unified\n"
	".thumb\n"
	".global invoke\n"
	".type invoke, %function\n"
	".thumb_func\n"
	"invoke: push {r4, lr}\n"
	"count_from: blx r0\n"
	"count_to: pop {r4, pc}\n");
