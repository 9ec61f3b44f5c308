/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that run models on shared devices, which they use in opposite orders with different
 * programs. Runs of the long model are cancelled at random times; those of the urgent one, in two
 * workspaces, are not disturbed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <opwest/npu_emul_host.h>

#include <long_hold.h>
#include <urgent.h>

#include "../../compile/programs/cases.h"

#define ELEMENTS 16

OPWEST_NPU_EMUL_HOST_DEFINE(npu_a, 300);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_b, 0);
LONG_HOLD_WORKSPACE_DEFINE(long_workspace);
URGENT_WORKSPACE_DEFINE(urgent_workspace_1);
URGENT_WORKSPACE_DEFINE(urgent_workspace_2);
static const struct long_hold_devices long_context = {.first = &npu_a, .second = &npu_b};
static const struct urgent_devices urgent_context = {.first = &npu_b, .second = &npu_a};
static atomic_bool stopping;
static atomic_int cancelled, urgent_runs;

static void expect(const int8_t *x, int factor, const int8_t *y)
{
	for (int i = 0; i < ELEMENTS; i++) {
		EXPECT(y[i] == factor * x[i]);
	}
}

static void fill(int8_t *x, unsigned int seed)
{
	for (int i = 0; i < ELEMENTS; i++) {
		seed = seed * 1664525U + 1013904223U;
		x[i] = (int8_t)((int)(seed >> 24) % 60 - 30);
	}
}

static void *run_until_stopped(void *unused)
{
	int8_t x[ELEMENTS];

	for (unsigned int i = 0; !stopping; i++) {
		fill(x, i);
		memcpy(long_workspace.input.x, x, ELEMENTS);

		const int rc = long_hold_run(&(struct long_hold_inputs){0},
					     &(struct long_hold_outputs){0}, &long_workspace,
					     &long_context);

		EXPECT(long_workspace.opened);
		if (rc == 0) {
			expect(x, 3, long_workspace.output.y);
		} else {
			EXPECT(rc == -ECANCELED && long_workspace.status.code == rc);
			EXPECT(long_workspace.status.hook == OPWEST_HOOK_CANCEL);
			cancelled++;
		}
	}
	return unused;
}

static void *run_undisturbed(void *argument)
{
	struct urgent_workspace *const workspace = argument;
	int8_t x[ELEMENTS];

	for (unsigned int i = 0; !stopping; i++) {
		fill(x, 3U * i + (workspace == &urgent_workspace_1));
		memcpy(workspace->input.x, x, ELEMENTS);
		EXPECT_CODE(urgent_run(&(struct urgent_inputs){0}, &(struct urgent_outputs){0},
				       workspace, &urgent_context), 0);
		expect(x, 4, workspace->output.y);
		urgent_runs++;
	}
	return NULL;
}

static void case_shared(void)
{
	const int count = getenv("OPWEST_CAMPAIGN") == NULL ? 100 : 2000;
	const struct device *const devices[] = {&npu_a, &npu_b};
	unsigned int seed = 7;
	pthread_t threads[3];

	alarm(110);
	EXPECT_CODE(long_hold_open(&long_workspace, &long_context), 0);
	EXPECT_CODE(urgent_open(&urgent_workspace_1, &urgent_context), 0);
	EXPECT_CODE(urgent_open(&urgent_workspace_2, &urgent_context), 0);
	EXPECT(pthread_create(&threads[0], NULL, run_until_stopped, NULL) == 0);
	EXPECT(pthread_create(&threads[1], NULL, run_undisturbed, &urgent_workspace_1) == 0);
	EXPECT(pthread_create(&threads[2], NULL, run_undisturbed, &urgent_workspace_2) == 0);
	for (int i = 0; i < count || cancelled <= count / 10 || urgent_runs <= 10; i++) {
		seed = seed * 1664525U + 1013904223U;
		opwest_port_sleep_us((seed >> 8) % 26000U);
		EXPECT_CODE(long_hold_cancel(&long_workspace), 0);
	}
	stopping = true;
	for (int i = 0; i < 3; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
	}
	for (int i = 0; i < 2; i++) {
		struct opwest_npu_emul_counts counts;

		opwest_npu_emul_count(devices[i], &counts);
		EXPECT(counts.succeeded[OPWEST_NPU_EMUL_OPEN] ==
		       counts.calls[OPWEST_NPU_EMUL_CLOSE]);
	}
	EXPECT_CODE(long_hold_close(&long_workspace, &long_context), 0);
	EXPECT_CODE(urgent_close(&urgent_workspace_1, &urgent_context), 0);
	EXPECT_CODE(urgent_close(&urgent_workspace_2, &urgent_context), 0);
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, CASE(shared));
}
