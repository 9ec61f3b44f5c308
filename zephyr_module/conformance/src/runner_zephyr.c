/* SPDX-License-Identifier: Apache-2.0 */
/* The ztest suite: a test for each case, which runs on all devices. */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#include <zephyr/ztest.h>

#include "cases.h"

static K_THREAD_STACK_DEFINE(stack, CONFIG_OPWEST_CONFORMANCE_STACK_SIZE);
static const struct device *to_wake;

void conformance_prepare(struct opwest_port_thread *thread)
{
	thread->stack = stack;
	thread->stack_size = K_THREAD_STACK_SIZEOF(stack);
	thread->priority = K_LOWEST_APPLICATION_THREAD_PRIO;
}

bool conformance_in_isr(void)
{
	return k_is_in_isr();
}

static void wake(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	opwest_accelerator_wake(to_wake);
}

static K_TIMER_DEFINE(waker, wake, NULL);

bool conformance_wake_in_isr(const struct device *dev)
{
	to_wake = dev;
	k_timer_start(&waker, K_MSEC(SHORT_MS), K_NO_WAIT);
	return true;
}

int conformance_priority(void)
{
	return k_thread_priority_get(k_current_get());
}

bool conformance_has_priorities(void)
{
	return true;
}

bool conformance_has_power(void)
{
	return IS_ENABLED(CONFIG_PM_DEVICE_RUNTIME);
}

static void run(const char *name, conformance_case_t function)
{
	uint32_t passed = 0U;

	for (uint32_t i = 0; i < opwest_conformance.device_count; i++) {
		const struct device *const dev = opwest_conformance.devices[i];

		zassert_true(device_is_ready(dev), "%s is not ready", dev->name);

		const struct conformance_check check = conformance_run(function, dev);

		zassert_is_null(check.wrong, "%s on %s: %s:%d: %s is %ld, expected %ld", name,
				dev->name, check.file, check.line, check.wrong, check.got,
				check.wanted);
		if (check.skipped != NULL) {
			printk("SKIP %s on %s: %s\n", name, dev->name, check.skipped);
		} else {
			passed++;
		}
	}
	if (passed == 0U) {
		ztest_test_skip();
	}
}

#define AS_TEST(name)                                                                              \
	ZTEST(opwest_conformance, test_##name)                                                     \
	{                                                                                          \
		run(#name, conformance_##name);                                                    \
	}
CONFORMANCE_CASES(AS_TEST)

ZTEST_SUITE(opwest_conformance, NULL, NULL, NULL, NULL, NULL);
