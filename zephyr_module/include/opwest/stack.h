/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief How much stack a function takes, measured. Zephyr only, with CONFIG_THREAD_STACK_INFO.
 */
#ifndef OPWEST_STACK_H_
#define OPWEST_STACK_H_

#include <stdint.h>

#include <zephyr/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that an exception may push during the measurement, and that the measuring itself takes. */
#define OPWEST_STACK_UNSURE 256U
/** What unused stack is filled with. */
#define OPWEST_STACK_FILLED 0xa5U
/** What the measuring function itself may have below its variables, bytes. */
#define OPWEST_STACK_OWN    64U

/**
 * @brief Call a function and return how deep it went.
 *
 * Fills what the current thread does not use of its stack, calls, and looks how far that was
 * written. Threads of simulators that are programs of the host have stacks of the host's: there it
 * cannot be measured.
 *
 * @param call The function.
 *
 * @return Bytes from here down to the lowest that was written, up to OPWEST_STACK_UNSURE more than
 *         the function needs
 */
static uint32_t __noinline opwest_stack_measure(void (*call)(void))
{
	volatile uint8_t here = 0U;
	const uintptr_t lowest = k_current_get()->stack_info.start;
	const uintptr_t top = (uintptr_t)&here - OPWEST_STACK_OWN;
	uintptr_t at;

	/* Not memset(): it would fill its own frame. */
	for (at = lowest; at < top; at++) {
		*(volatile uint8_t *)at = OPWEST_STACK_FILLED;
	}
	call();
	for (at = lowest; at < top && *(volatile uint8_t *)at == OPWEST_STACK_FILLED; at++) {
	}
	return (uint32_t)((uintptr_t)&here - at);
}

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_STACK_H_ */
