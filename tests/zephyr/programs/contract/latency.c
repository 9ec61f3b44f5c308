/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound on the latency, in microseconds, and the time of a run; the latency of an urgent model
 * beside a long one.
 */
#include <longer.h>
#include <one.h>
#include <timed.h>

#include "contract.h"

#define TICK_US (1000000 / CONFIG_SYS_CLOCK_TICKS_PER_SEC)
#define LOW 10
#define HIGH 6
#define ARRIVALS 10

USE_MODEL(one, ONE)
TIMED_WORKSPACE_DEFINE(timed_workspace);
LONGER_WORKSPACE_DEFINE(longer_workspace);

static void bound(void)
{
	const struct timed_devices on = {NPU(npu_load), NPU(npu_slow)};
	int8_t y[COUNT];
	int64_t began;
	int64_t us;

	check("latency", "open", timed_open(&timed_workspace, &on), 0);
	memset(timed_workspace.input.x, 1, COUNT);
	for (int i = 0; i < 3; i++) {
		(void)k_sleep(K_TICKS(1));
		began = now_us();
		check("latency", "run",
		      timed_run(&(struct timed_inputs){0}, &(struct timed_outputs){y},
				&timed_workspace, &on),
		      0);
		us = now_us() - began;
		printf("latency: %d us, bound %d us\n", (int)us, (int)TIMED_LATENCY_CYCLES);
#ifdef CONFIG_ARCH_POSIX
		/* Code takes no time. */
		check_range("latency", "us", us, TIMED_LATENCY_CYCLES - 2 * TICK_US,
			    TIMED_LATENCY_CYCLES);
#else
		check_range("latency", "us", us, TIMED_LATENCY_CYCLES - 2 * TICK_US,
			    TIMED_LATENCY_CYCLES + 2 * TICK_US);
#endif
	}
	/* p1 and p2 on one device, p3 on the other. */
	check("latency", "result", y[0], 3 * (2 * 1 + 1) + (1 + 7));
	check("latency", "close", timed_close(&timed_workspace, &on), 0);
}

static const struct longer_devices longer_on = {NPU(npu_slow)};
static K_MUTEX_DEFINE(whole_run);
static bool owns_whole_run;
static int longer_rc;

/* As before this contract: a run owns its devices from its begin to its end. */
static void enter(void)
{
	if (owns_whole_run) {
		(void)k_mutex_lock(&whole_run, K_FOREVER);
	}
}

static void leave(void)
{
	if (owns_whole_run) {
		(void)k_mutex_unlock(&whole_run);
	}
}

static void run_longer(void)
{
	int8_t x[COUNT] = {0}, y[COUNT];

	enter();
	longer_rc = longer_run(&(struct longer_inputs){x}, &(struct longer_outputs){y},
			       &longer_workspace, &longer_on);
	leave();
}

/* Returns the longest time of the urgent model that begins at several times of the long one. */
static int64_t measure(const char *what)
{
	int64_t longest = 0;
	int64_t all = 0;

	for (int i = 0; i < ARRIVALS; i++) {
		int64_t us;
		int rc;

		(void)k_sleep(K_TICKS(1));
		start_helper(HELPER_A, LOW, 0, run_longer);
		(void)k_msleep(1 + 7 * i);
		us = now_us();
		enter();
		rc = one_once(1);
		leave();
		us = now_us() - us;
		check("urgent", "run", rc, 0);
		join_helper(HELPER_A);
		check("urgent", "run of the long model", longer_rc, 0);
		all += us;
		longest = MAX(longest, us);
	}
	printf("urgent: %s: at most %d us, mean %d us\n", what, (int)longest,
	       (int)(all / ARRIVALS));
	return longest;
}

static void urgent(void)
{
	const int priority = k_thread_priority_get(k_current_get());

	check("urgent", "open",
	      longer_open(&longer_workspace, &longer_on) | one_begin(NPU(npu_slow)), 0);
	k_thread_priority_set(k_current_get(), HIGH);
	owns_whole_run = true;
	check_range("urgent", "at most us, device owned for the whole run", measure("whole run"),
		    70000, 90000);
	owns_whole_run = false;
	check_range("urgent", "at most us, device owned for its steps", measure("steps"), 10000,
		    22000);
	k_thread_priority_set(k_current_get(), priority);
	check("urgent", "close", one_end() | longer_close(&longer_workspace, &longer_on), 0);
}

void latency(void)
{
	bound();
	urgent();
}
