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
/* Code takes no time on native_sim. */
#define TIME_OF_CODE (IS_ENABLED(CONFIG_ARCH_POSIX) ? 0 : 2 * TICK_US)
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
		check_range("latency", "us", us, TIMED_LATENCY_CYCLES - 2 * TICK_US,
			    TIMED_LATENCY_CYCLES + TIME_OF_CODE);
	}
	/* p1 and p2 on one device, p3 on the other. */
	check("latency", "result", y[0], 3 * (2 * 1 + 1) + (1 + 7));
	check("latency", "close", timed_close(&timed_workspace, &on), 0);
}

static const struct longer_devices longer_on = {NPU(npu_slow)};
static int longer_rc;

static void run_longer(void)
{
	int8_t x[COUNT] = {0}, y[COUNT];

	longer_rc = longer_run(&(struct longer_inputs){x}, &(struct longer_outputs){y},
			       &longer_workspace, &longer_on);
}

/* Returns the longest time of the urgent model that begins at several times of the long one. */
static int64_t measure(void)
{
	int64_t longest = 0;

	for (int i = 0; i < ARRIVALS; i++) {
		int64_t us;
		int rc;

		(void)k_sleep(K_TICKS(1));
		start_helper(HELPER_A, LOW, 0, run_longer);
		(void)k_msleep(1 + 7 * i);
		us = now_us();
		rc = one_once(1);
		us = now_us() - us;
		check("urgent", "run", rc, 0);
		join_helper(HELPER_A);
		check("urgent", "run of the long model", longer_rc, 0);
		longest = MAX(longest, us);
	}
	return longest;
}

static void urgent(void)
{
	const int priority = k_thread_priority_get(k_current_get());

	check("urgent", "open",
	      longer_open(&longer_workspace, &longer_on) | one_begin(NPU(npu_slow)), 0);
	k_thread_priority_set(k_current_get(), HIGH);
	check_range("urgent", "at most us, device owned for its steps", measure(), 10000, 22000);
	k_thread_priority_set(k_current_get(), priority);
	check("urgent", "close", one_end() | longer_close(&longer_workspace, &longer_on), 0);
}

void latency(void)
{
	bound();
	urgent();
}
