/* SPDX-License-Identifier: Apache-2.0 */
/* Programs per step on one device of two models. */
#include <alpha.h>
#include <beta.h>
#include <freed.h>

#include "contract.h"

#define RUNS 10
/* The planned loads of a run of either model, which the test compares with the schedule. */
#define LOADS 3

USE_MODEL(alpha, ALPHA)
USE_MODEL(beta, BETA)
USE_MODEL(freed, FREED)

/* What the programs of the test compute. */
static int alpha_of(int x)
{
	return 3 * (2 * x + 1) + 7;
}

static int beta_of(int x)
{
	return 2 * (2 * (3 * x) + 1) + 5;
}

/* The model of each run, in the order in which runs end. */
static char order[2 * RUNS + 1];
static atomic_t ended;
static atomic_t wrong;

static void note(char model, bool right)
{
	atomic_add(&wrong, right ? 0 : 1);
	order[atomic_inc(&ended)] = model;
}

static void run_alpha(int i)
{
	const int8_t first = (int8_t)(i % 4);

	note('a', alpha_once(first) == 0 && equals(alpha_result, first, alpha_of));
}

static void run_beta(int i)
{
	const int8_t first = (int8_t)(i % 3);

	note('b', beta_once(first) == 0 && equals(beta_result, first, beta_of));
}

static void many_alpha(void)
{
	for (int i = 0; i < RUNS; i++) {
		run_alpha(i);
	}
}

static void many_beta(void)
{
	for (int i = 0; i < RUNS; i++) {
		run_beta(i);
	}
}

static int changes(void)
{
	int count = 0;

	for (int i = 1; i < 2 * RUNS; i++) {
		count += order[i] != order[i - 1];
	}
	return count;
}

static void check_runs(const char *area, const struct device *npu, int least_changes)
{
	const struct opwest_npu_emul_counts counts = counts_of(npu);

	printf("order of runs: %s\n", order);
	check(area, "runs with wrong results", atomic_get(&wrong), 0);
	check(area, "jobs", counts.succeeded[OPWEST_NPU_EMUL_JOB], 2 * RUNS * 3);
	/* No run begins with the program that another one ends with: all planned loads occur. */
	check(area, "loads", counts.loaded, RUNS * 2 * LOADS);
	check_range(area, "changes between the models", changes(), least_changes, 2 * RUNS);
}

static void restart(const struct device *npu)
{
	opwest_npu_emul_reset(npu);
	atomic_clear(&ended);
	atomic_clear(&wrong);
}

static void two_models(const char *area, const struct device *npu)
{
	check(area, "open alpha", alpha_begin(npu), 0);
	check(area, "open beta", beta_begin(npu), 0);
	restart(npu);
	for (int i = 0; i < RUNS; i++) {
		run_alpha(i);
		run_beta(i);
	}
	check_runs(area, npu, 2 * RUNS - 1);

	restart(npu);
	start_helper(HELPER_A, 5, 0, many_alpha);
	start_helper(HELPER_B, 5, 0, many_beta);
	join_helper(HELPER_A);
	join_helper(HELPER_B);
	check_runs(area, npu, RUNS);
	check(area, "close beta", beta_end(), 0);
	check(area, "close alpha", alpha_end(), 0);
}

/* A model that queues launches of three programs, for a device that needs no empty queue for it. */
static void queued(const char *what, const struct device *npu, uint32_t most)
{
	bool right;

	check("free", "open", freed_begin(npu), 0);
	opwest_npu_emul_reset(npu);
	right = freed_once(1) == 0 && equals(freed_result, 1, alpha_of);
	check("free", what, right, true);
	check("free", "loads", counts_of(npu).loaded, 3);
	check("free", "largest number of jobs", counts_of(npu).most, most);
	check("free", "close", freed_end(), 0);
}

void switching(void)
{
	two_models("load", NPU(npu_load));
	two_models("free", NPU(npu_free));
	queued("on a device with free switches", NPU(npu_free), 3);
	/* The driver decides. */
	queued("on a device with loads", NPU(npu_load), 1);
}
