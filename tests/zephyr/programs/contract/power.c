/* SPDX-License-Identifier: Apache-2.0 */
/* The power of a device per open or per run, and after every failure. */
#include <zephyr/pm/device.h>

#include <frugal.h>
#include <one.h>

#include "contract.h"

#define RUNS 3

USE_MODEL(frugal, FRUGAL)
USE_MODEL(one, ONE)

static const struct device *const npu = NPU(npu_power);

static void check_counts(const char *area, const char *what, uint32_t resumed, uint32_t suspended,
			 uint32_t loaded)
{
	const struct opwest_npu_emul_counts counts = counts_of(npu);

	printf("%s: %s: %u resumed, %u suspended, %u loaded\n", area, what,
	       (unsigned int)counts.resumed, (unsigned int)counts.suspended,
	       (unsigned int)counts.loaded);
	check(area, "resumed", counts.resumed, resumed);
	check(area, "suspended", counts.suspended, suspended);
	check(area, "loaded", counts.loaded, loaded);
}

static bool is_suspended(void)
{
	enum pm_device_state state;

	return pm_device_state_get(npu, &state) == 0 && state == PM_DEVICE_STATE_SUSPENDED;
}

static void per_open(void)
{
	const char *const area = "power: open";

	opwest_npu_emul_reset(npu);
	check(area, "open", one_begin(npu), 0);
	check_counts(area, "after open", 1, 0, 0);
	for (int i = 0; i < RUNS; i++) {
		check(area, "run", one_once((int8_t)i), 0);
		check(area, "result", equals(one_result, (int8_t)i, one_of), true);
		check(area, "suspended after a run", is_suspended(), false);
	}
	check_counts(area, "after 3 runs", 1, 0, 1);
	check(area, "close", one_end(), 0);
	check_counts(area, "after close", 1, 1, 1);
	check(area, "open again", one_begin(npu), 0);
	check(area, "run again", one_once(1), 0);
	check(area, "close again", one_end(), 0);
	check_counts(area, "after the second close", 2, 2, 2);
}

static void per_run(void)
{
	const char *const area = "power: run";

	opwest_npu_emul_reset(npu);
	check(area, "open", frugal_begin(npu), 0);
	check_counts(area, "after open", 1, 1, 0);
	for (int i = 0; i < RUNS; i++) {
		check(area, "run", frugal_once((int8_t)i), 0);
		check(area, "result", equals(frugal_result, (int8_t)i, one_of), true);
		check(area, "suspended after a run", is_suspended(), true);
	}
	check_counts(area, "after 3 runs", 1 + RUNS, 1 + RUNS, RUNS);
	check(area, "close", frugal_end(), 0);
	check_counts(area, "after close", 2 + RUNS, 2 + RUNS, RUNS);

	/* Beside a model that holds the power, runs do not change it. */
	opwest_npu_emul_reset(npu);
	check(area, "open a model with power: open", one_begin(npu), 0);
	check(area, "open beside it", frugal_begin(npu), 0);
	check(area, "run it", one_once(1), 0);
	check(area, "run beside it", frugal_once(1), 0);
	check_counts(area, "beside power: open", 1, 0, 1);
	check(area, "close the other", one_end(), 0);
	check(area, "suspended", is_suspended(), true);
	check(area, "run alone", frugal_once(2), 0);
	check(area, "close", frugal_end(), 0);
}

static void balanced(const char *area, int point)
{
	const struct opwest_npu_emul_counts counts = counts_of(npu);

	printf("%s: failure at point %d: %u resumed, %u suspended\n", area, point,
	       (unsigned int)counts.resumed, (unsigned int)counts.suspended);
	check_range(area, "resumed", counts.resumed, 1, 3);
	check(area, "as often suspended", counts.suspended, counts.resumed);
	check(area, "suspended at the end", is_suspended(), true);
}

/* Fails the first call of open, run or close that meets a point; the last point is a hang. */
#define FAIL_ONCE(m)                                                                               \
	static void m##_fails(const char *area, int point)                                         \
	{                                                                                          \
		int rc;                                                                            \
                                                                                                   \
		opwest_npu_emul_reset(npu);                                                        \
		if (point == OPWEST_NPU_EMUL_POINTS) {                                             \
			opwest_npu_emul_hang(npu, 0);                                              \
		} else {                                                                           \
			(void)opwest_npu_emul_inject(npu, (enum opwest_npu_emul_point)point, 0,    \
						     -EILSEQ);                                     \
		}                                                                                  \
		rc = m##_begin(npu);                                                               \
		rc = rc == 0 ? m##_once(1) : rc;                                                   \
		if (m##_workspace.opened) {                                                        \
			const int closed = m##_end();                                              \
                                                                                                   \
			rc = rc == 0 ? closed : rc;                                                \
		}                                                                                  \
		check(area, "first error", rc,                                                     \
		      point == OPWEST_NPU_EMUL_POINTS ? -ETIMEDOUT : -EILSEQ);                     \
		balanced(area, point);                                                             \
	}

FAIL_ONCE(one)
FAIL_ONCE(frugal)

void power(void)
{
	check("power", "suspended before open", is_suspended(), true);
	per_open();
	per_run();
	for (int point = 0; point <= OPWEST_NPU_EMUL_POINTS; point++) {
		one_fails("power: open", point);
		frugal_fails("power: run", point);
	}
	per_open();
	per_run();
}
