/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Measurement of the stack of a function. Zephyr only, with CONFIG_THREAD_STACK_INFO.
 */
#ifndef OPWEST_STACK_H_
#define OPWEST_STACK_H_

#include <stdint.h>

#include <zephyr/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of an exception during the measurement, and of the measurement itself. */
#define OPWEST_STACK_UNSURE 256U
/** The fill pattern of unused stack. */
#define OPWEST_STACK_FILLED 0xa5U
/** The maximum bytes that the measuring function uses below its variables. */
#define OPWEST_STACK_OWN    64U

/**
 * @brief Call a function and measure its stack.
 *
 * Fills the unused stack of the current thread, calls the function, and searches for the lowest
 * written byte. Threads of simulators that are host programs use stacks of the host, which cannot
 * be measured.
 *
 * @param call The function.
 *
 * @return Bytes from here to the lowest written byte, at most OPWEST_STACK_UNSURE above the need
 */
static uint32_t __noinline opwest_stack_measure(void (*call)(void))
{
	volatile uint8_t here = 0U;
	/* Above the word that CONFIG_STACK_SENTINEL checks in each switch of threads. */
	const uintptr_t lowest = k_current_get()->stack_info.start +
				 (IS_ENABLED(CONFIG_STACK_SENTINEL) ? sizeof(uint32_t) : 0U);
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
