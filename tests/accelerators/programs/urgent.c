/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An urgent short model beside a long one on the same emulated device; runs that are cancelled.
 *
 *     urgent latency RUNS   the latency of `urgent` beside `short_hold` and beside `long_hold`
 *     urgent cancel CANCELS SEED   `long_hold` is cancelled at random times; `urgent` is not disturbed
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opwest/npu_emul_host.h>

#include <long_hold.h>
#include <short_hold.h>
#include <urgent.h>

#define ELEMENTS 16

OPWEST_NPU_EMUL_HOST_DEFINE(npu, 300);

LONG_HOLD_WORKSPACE_DEFINE(long_workspace);
SHORT_HOLD_WORKSPACE_DEFINE(short_workspace);
URGENT_WORKSPACE_DEFINE(urgent_workspace);
static const struct long_hold_devices long_context = {.only = &npu};
static const struct short_hold_devices short_context = {.only = &npu};
static const struct urgent_devices urgent_context = {.only = &npu};
static atomic_bool stopping;

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);
int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
	return opwest_npu_emul_add(dev, 1, a, b, y, ELEMENTS);
}

/* Work of the processor, here a sleep, so that the threads need no processor each. */
int32_t busy(const int8_t *x, int8_t *y);
int32_t busy(const int8_t *x, int8_t *y)
{
	opwest_port_sleep_us(4000);
	memcpy(y, x, ELEMENTS);
	return 0;
}

static void fail(const char *what, int code)
{
	printf("%s: %d\n", what, code);
	exit(1);
}

/* y = x + x; the long models add x again after their work on the processor. */
static void expect(const int8_t *y, int8_t value)
{
	for (int i = 0; i < ELEMENTS; i++) {
		if (y[i] != value) {
			fail("wrong result", y[i]);
		}
	}
}

static int run_urgent(int8_t x)
{
	int rc;

	memset(urgent_workspace.input.x, x, ELEMENTS);
	rc = urgent_run(&(struct urgent_inputs){0}, &(struct urgent_outputs){0}, &urgent_workspace,
			&urgent_context);
	if (rc == 0) {
		expect(urgent_workspace.output.y, (int8_t)(2 * x));
	}
	return rc;
}

/* ---- latency ---- */

static void *run_long(void *unused)
{
	while (!stopping) {
		memset(long_workspace.input.x, 3, ELEMENTS);
		if (long_hold_run(&(struct long_hold_inputs){0},
				  &(struct long_hold_outputs){0}, &long_workspace,
				  &long_context) != 0) {
			fail("long_hold", long_workspace.status.code);
		}
		expect(long_workspace.output.y, 12);
		opwest_port_sleep_us(1000);
	}
	return unused;
}

static void *run_short(void *unused)
{
	int8_t y[ELEMENTS];

	while (!stopping) {
		memset(short_workspace.input.x, 3, ELEMENTS);
		if (short_hold_run(&(struct short_hold_inputs){0},
				   &(struct short_hold_outputs){.y = y}, &short_workspace,
				   &short_context) != 0) {
			fail("short_hold", short_workspace.status.code);
		}
		expect(y, 6);
		opwest_port_sleep_us(1000);
	}
	return unused;
}

static int compare(const void *a, const void *b)
{
	const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return first < second ? -1 : first > second;
}

static void latency(const char *beside, void *(*function)(void *), int runs)
{
	int64_t *const took = malloc((size_t)runs * sizeof(took[0]));
	pthread_t thread;

	stopping = false;
	if (took == NULL || pthread_create(&thread, NULL, function, NULL) != 0) {
		fail("no thread", 0);
	}
	for (int i = 0; i < runs; i++) {
		/* Different times of the long model. */
		opwest_port_sleep_us(2000U + (uint32_t)(i * 7919 % 20011));
		took[i] = opwest_port_clock_us();
		if (run_urgent((int8_t)(i % 50)) != 0) {
			fail("urgent", urgent_workspace.status.code);
		}
		took[i] = opwest_port_clock_us() - took[i];
	}
	stopping = true;
	(void)pthread_join(thread, NULL);
	qsort(took, (size_t)runs, sizeof(took[0]), compare);
	printf("%s %lld %lld\n", beside, (long long)took[runs / 2],
	       (long long)took[(runs - 1) * 9 / 10]);
	free(took);
}

/* ---- cancel ---- */

static unsigned long cancelled, finished, urgent_runs;

static void *run_until_stopped(void *unused)
{
	while (!stopping) {
		int rc;

		memset(long_workspace.input.x, 3, ELEMENTS);
		rc = long_hold_run(&(struct long_hold_inputs){0},
				   &(struct long_hold_outputs){0}, &long_workspace,
				   &long_context);
		if (!long_workspace.opened) {
			fail("closed", rc);
		} else if (rc == 0) {
			expect(long_workspace.output.y, 12);
			finished++;
		} else if (rc == -ECANCELED && long_workspace.status.code == rc &&
			   long_workspace.status.hook == OPWEST_HOOK_CANCEL) {
			cancelled++;
		} else {
			fail("not cancelled", rc);
		}
	}
	return unused;
}

static void *run_undisturbed(void *unused)
{
	while (!stopping) {
		const int rc = run_urgent((int8_t)(urgent_runs % 50));

		if (rc != 0) {
			fail("disturbed", rc);
		}
		urgent_runs++;
	}
	return unused;
}

static void cancel(int count, unsigned int seed)
{
	struct opwest_npu_emul_counts counts;
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, run_until_stopped, NULL) != 0 ||
	    pthread_create(&threads[1], NULL, run_undisturbed, NULL) != 0) {
		fail("no thread", 0);
	}
	for (int i = 0; i < count; i++) {
		seed = seed * 1664525U + 1013904223U;
		opwest_port_sleep_us((seed >> 8) % 26000U);
		if (long_hold_cancel(&long_workspace) != 0) {
			fail("cancel", 0);
		}
	}
	stopping = true;
	(void)pthread_join(threads[0], NULL);
	(void)pthread_join(threads[1], NULL);
	opwest_npu_emul_count(&npu, &counts);
	printf("%lu cancelled, %lu finished, %lu urgent, %s\n", cancelled, finished, urgent_runs,
	       counts.succeeded[OPWEST_NPU_EMUL_OPEN] == counts.calls[OPWEST_NPU_EMUL_CLOSE]
		       ? "released once"
		       : "not released once");
}

int main(int argc, char **argv)
{
	if (argc < 3 || long_hold_open(&long_workspace, &long_context) != 0 ||
	    short_hold_open(&short_workspace, &short_context) != 0 ||
	    urgent_open(&urgent_workspace, &urgent_context) != 0) {
		return 2;
	}
	alarm(110);
	if (strcmp(argv[1], "latency") == 0) {
		latency("before", run_long, atoi(argv[2]));
		latency("after", run_short, atoi(argv[2]));
	} else {
		cancel(atoi(argv[2]), (unsigned int)atoi(argv[3]));
	}
	printf("close %d %d %d\n", long_hold_close(&long_workspace, &long_context),
	       short_hold_close(&short_workspace, &short_context),
	       urgent_close(&urgent_workspace, &urgent_context));
	return 0;
}
