/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end (by semihosting) of an image without an operating system on QEMU's RISC-V boards. */
#include <stdint.h>

#include "image.h"

static uintptr_t call_host(uintptr_t operation, const void *argument)
{
	register uintptr_t a0 __asm__("a0") = operation;
	register const void *a1 __asm__("a1") = argument;

	__asm__ volatile(".option push\n"
			 ".option norvc\n"
			 ".balign 16\n"
			 "slli zero, zero, 0x1f\n"
			 "ebreak\n"
			 "srai zero, zero, 7\n"
			 ".option pop\n"
			 : "+r"(a0)
			 : "r"(a1)
			 : "memory");
	return a0;
}

void print(const char *text)
{
	call_host(0x04, text); /* SYS_WRITE0 */
}

__attribute__((noreturn, used)) void reset(void)
{
	measure();
	call_host(0x18, (const void *)0x20026); /* SYS_EXIT, ADP_Stopped_ApplicationExit */
	for (;;) {
	}
}

/*
 * The field VS of mstatus enables the vector extension; without this extension it does not exist.
 * The plugin counts the instructions between the jalr and the next load.
 */
__asm__(".section .vectors, \"ax\"\n"
	".option push\n"
	".option arch, +zicsr\n"
	"li t0, 0x600\n"
	"csrs mstatus, t0\n"
	".option pop\n"
	"la sp, stack_top\n"
	"la tp, thread_variables\n"
	"j reset\n"
	".text\n"
	".global invoke\n"
	"invoke: addi sp, sp, -16\n"
	"sw ra, 0(sp)\n"
	"count_from: jalr a0\n"
	"count_to: lw ra, 0(sp)\n"
	"addi sp, sp, 16\n"
	"ret\n");
