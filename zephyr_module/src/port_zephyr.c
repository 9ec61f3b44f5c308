/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/fatal.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/logging/log_ctrl.h>
#include <zephyr/sys/atomic.h>
#include <zephyr/sys/printk.h>

#include <opwest/port.h>

LOG_MODULE_REGISTER(opwest, CONFIG_OPWEST_LOG_LEVEL);

BUILD_ASSERT(sizeof(opwest_port_flag_t) == sizeof(atomic_t), "a flag is an atomic_t");

bool opwest_port_take(opwest_port_flag_t *flag)
{
	return atomic_cas((atomic_t *)flag, 0, 1);
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	(void)atomic_set((atomic_t *)flag, 0);
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	LOG_ERR("%s: step %u returned %d", model, step, (int)code);
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	LOG_ERR("%s: %s of device %s returned %d", model, hook, device, (int)code);
}

#ifdef CONFIG_THREAD_STACK_INFO
/* The fill pattern of unused stack. */
#define FILLED    0xa5U
/* The maximum bytes that the measuring function uses below its variables. */
#define OWN_STACK 64U

__attribute__((noinline)) uint32_t opwest_stack_measure(void (*call)(void))
{
	volatile uint8_t here = 0U;
	/* Above the word that CONFIG_STACK_SENTINEL checks in each switch of threads. */
	const uintptr_t lowest = k_current_get()->stack_info.start +
				 (IS_ENABLED(CONFIG_STACK_SENTINEL) ? sizeof(uint32_t) : 0U);
	const uintptr_t top = (uintptr_t)&here - OWN_STACK;
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
#endif

#ifdef CONFIG_OPWEST_STACK_GUARD
/*
 * The message of a fatal error, also without CONFIG_LOG. The system stops as with Zephyr's own
 * handler.
 *
 * Weak: an application can have its own handler. Zephyr's, in the library of the kernel, is weak
 * too and comes later in the link. The type of the second parameter, which is unused, has another
 * name since Zephyr 3.7.
 */
void opwest_fatal_error(unsigned int reason, const void *esf) __asm__("k_sys_fatal_error_handler");

__weak void opwest_fatal_error(unsigned int reason, const void *esf)
{
	const char *const name = k_thread_name_get(k_current_get());

	ARG_UNUSED(esf);

	LOG_PANIC();
	/* `opwest run --board` reads this line. */
	printk("\nopwest: fatal error %u: %s in thread %s\n", reason,
	       reason == K_ERR_STACK_CHK_FAIL ? "stack overflow" : "exception",
	       name != NULL && name[0] != '\0' ? name : "unknown");
	k_fatal_halt(reason);
}
#endif
