/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/kernel.h>

#include <opwest/stack.h>

#define FILLED 0xa5U
/* What this function itself may have below its variables. */
#define OWN    64U

uint32_t __noinline opwest_stack_measure(void (*call)(void))
{
	volatile uint8_t here = 0U;
	const struct k_thread *const thread = k_current_get();
	volatile uint8_t *const lowest = (volatile uint8_t *)thread->stack_info.start;
	volatile uint8_t *const top = &here - OWN;
	volatile uint8_t *at;

	/* Not memset(): it would fill its own frame. */
	for (at = lowest; at < top; at++) {
		*at = FILLED;
	}
	call();
	for (at = lowest; at < top && *at == FILLED; at++) {
	}
	return (uint32_t)(&here - at);
}
