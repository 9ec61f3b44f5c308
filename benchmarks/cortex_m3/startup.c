/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end (by semihosting) of a bare Cortex-M3 image under QEMU, and functions for the runtime of opwest. */
#include <stdbool.h>
#include <stdint.h>

#include <opwest/port.h>

#include "image.h"

extern uint32_t stack_top[], data_start[], data_end[], data_load[];

static __attribute__((noreturn)) void leave(bool good)
{
	/* SYS_EXIT with ADP_Stopped_ApplicationExit or ADP_Stopped_RunTimeErrorUnknown. */
	register uint32_t operation __asm__("r0") = 0x18;
	register uint32_t reason __asm__("r1") = good ? 0x20026 : 0x20023;

	__asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(reason) : "memory");
	for (;;) {
	}
}

__attribute__((noreturn)) void reset(void)
{
	for (uint32_t i = 0; &data_start[i] < data_end; i++) {
		data_start[i] = data_load[i];
	}
	leave(measure());
}

static __attribute__((noreturn)) void fault(void)
{
	leave(false);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
	stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
	(const void *)fault, (const void *)fault, (const void *)fault,
};

/* The plugin counts the instructions between the blx and the pop. */
__attribute__((naked, noinline)) int invoke(const void *a, const void *b, const void *c, const void *d, any_run_t run)
{
	__asm__ volatile("push {r4, lr}\n\t"
			 "ldr r4, [sp, #8]\n"
			 ".global invoke_call\n"
			 "invoke_call:\n\t"
			 "blx r4\n"
			 ".global invoke_return\n"
			 "invoke_return:\n\t"
			 "pop {r4, pc}\n");
}

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != 0;
}

/* As atomic_cas() and atomic_set() of Zephyr with CONFIG_ATOMIC_OPERATIONS_BUILTIN. */
bool opwest_port_take(opwest_port_flag_t *flag)
{
	opwest_port_flag_t expected = 0;

	return __atomic_compare_exchange_n(flag, &expected, 1, 0, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	(void)__atomic_exchange_n(flag, 0, __ATOMIC_SEQ_CST);
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	(void)model;
	(void)step;
	(void)code;
	leave(false);
}
