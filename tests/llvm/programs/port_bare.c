/* SPDX-License-Identifier: Apache-2.0 */
/* A bare image under QEMU for Cortex-M and RISC-V: start code, semihosting, and the used parts of a C library. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <opwest/port.h>

#include "port.h"

extern uint32_t stack_top[], bss_start[], bss_end[];
void start(void) __attribute__((noreturn, used));
void reset(void);

static uintptr_t semihosting(uintptr_t operation, const void *parameter)
{
#ifdef __arm__
	register uintptr_t r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = parameter;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
#else
	register uintptr_t a0 __asm__("a0") = operation;
	register const void *a1 __asm__("a1") = parameter;

	/* The three instructions must be uncompressed and on one page. */
	__asm__ volatile(".balign 16\n\t.option push\n\t.option norvc\n\t"
			 "slli x0, x0, 0x1f\n\tebreak\n\tsrai x0, x0, 7\n\t.option pop"
			 : "+r"(a0)
			 : "r"(a1)
			 : "memory");
	return a0;
#endif
}

void port_write(const char *text)
{
	semihosting(4, text);
}

static __attribute__((noreturn)) void leave(uintptr_t reason)
{
	/* SYS_EXIT takes the reason itself in 32 bits, a block in 64 bits. */
	static uintptr_t block[2];

	block[0] = reason;
	semihosting(0x18, sizeof(uintptr_t) == 8 ? (const void *)block : (const void *)reason);
	for (;;) {
	}
}

static __attribute__((noreturn, used)) void fault(void)
{
	port_write("fault\n");
	leave(0x20023);
}

void start(void)
{
	for (uint32_t *word = bss_start; word < bss_end; word++) {
		*(volatile uint32_t *)word = 0;
	}
	walk();
	leave(0x20026);
}

#ifdef __arm__
__attribute__((noreturn, used)) void reset(void)
{
#ifdef __ARM_FP
	/* CPACR: full access to coprocessors 10 and 11. */
	*(volatile uint32_t *)0xE000ED88U |= 0xFU << 20;
	__asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
	start();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
	stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
	(const void *)fault, (const void *)fault, (const void *)fault,
};
#else
__attribute__((naked, noreturn, section(".vectors"), used)) void reset(void)
{
	/* zicsr: implied by compilers before GCC 12. */
	__asm__ volatile(".option push\n\t.option norelax\n\t.option arch, +zicsr\n\t"
			 "la sp, stack_top\n\tla t0, fault\n\tcsrw mtvec, t0\n\t"
#ifdef __riscv_flen
			 "li t0, 0x6000\n\tcsrs mstatus, t0\n\t"
#endif
			 "j start\n\t.option pop");
}
#endif

bool opwest_port_device_is_ready(const struct device *dev)
{
	return dev != NULL;
}

static void write_number(int64_t number)
{
	char digits[24];
	char *at = digits + sizeof(digits) - 1;
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

	*at = '\0';
	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest != 0);
	if (number < 0) {
		*--at = '-';
	}
	port_write(at);
}

int64_t opwest_port_uptime_ms(void)
{
	return 0;
}

uintptr_t opwest_port_thread(void)
{
	return 1U; /* one thread */
}

bool opwest_port_take(opwest_port_flag_t *flag)
{
	const bool taken = *flag == 0; /* one thread */

	*flag = 1;
	return taken;
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	*flag = 0;
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	port_write("log ");
	port_write(model);
	port_write(" ");
	write_number(step);
	port_write(" ");
	write_number(code);
	port_write("\n");
}

void *memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	}
	return to;
}

void *memset(void *to, int value, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		((volatile uint8_t *)to)[i] = (uint8_t)value;
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const int difference = ((const uint8_t *)a)[i] - ((const uint8_t *)b)[i];

		if (difference != 0) {
			return difference;
		}
	}
	return 0;
}

int strcmp(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return (uint8_t)*a - (uint8_t)*b;
}
