/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/kernel.h>

#include <opwest/stack.h>

#define FILLED 0xa5U
/* What this function itself may have below its variables. */
#define OWN    64U

uint32_t __noinline opwest_stack_measure(void (*call)(void))
{
	volatile uint8_t here = 0U;
	const uintptr_t lowest = k_current_get()->stack_info.start;
	const uintptr_t top = (uintptr_t)&here - OWN;
	uintptr_t at;

	/* Not memset(): it would fill its own frame. */
	for (at = lowest; at < top; at++) {
		*(volatile uint8_t *)at = FILLED;
	}
	call();
	for (at = lowest; at < top && *(volatile uint8_t *)at == FILLED; at++) {
	}
	return (uint32_t)((uintptr_t)&here - at);
}
