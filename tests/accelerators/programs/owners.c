/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that run models on shared devices: owners RUNS_OF_TWO_MODELS RUNS_OF_ONE. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opwest/npu_emul_host.h>

#include <ab.h>
#include <ba.h>
#include <other.h>

#define ELEMENTS 16

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);

static int8_t sum(int8_t a, int8_t b)
{
	const int exact = a + b;

	return (int8_t)(exact > 127 ? 127 : exact < -128 ? -128 : exact);
}

OPWEST_NPU_EMUL_HOST_DEFINE(npu_a, 0);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_b, 0);

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
	return opwest_npu_emul_add(dev, 1, a, b, y, ELEMENTS);
}

AB_WORKSPACE_DEFINE(ab_workspace_1);
AB_WORKSPACE_DEFINE(ab_workspace_2);
BA_WORKSPACE_DEFINE(ba_workspace);
OTHER_WORKSPACE_DEFINE(other_workspace);

static const struct ab_devices ab_context = {.first = &npu_a, .second = &npu_b};
static const struct ab_devices ab_context_2 = {.first = &npu_a, .second = &npu_b};
static const struct ba_devices ba_context = {.first = &npu_b, .second = &npu_a};
static const struct other_devices other_context = {.first = &npu_b, .second = &npu_a};
static int runs;

static void difference(const int8_t *a, const int8_t *b, int8_t *y)
{
	for (int i = 0; i < ELEMENTS; i++) {
		y[i] = (int8_t)((a[i] - b[(i + 1) % ELEMENTS]) / 2);
	}
}

/* The results of the models. */
static void reference(const int8_t *x, int8_t *y)
{
	int8_t a[ELEMENTS], c[ELEMENTS], d[ELEMENTS], e[ELEMENTS];

	for (int i = 0; i < ELEMENTS; i++) {
		a[i] = sum(x[i], x[i]);
	}
	difference(a, a, c);
	for (int i = 0; i < ELEMENTS; i++) {
		d[i] = sum(c[i], x[i]);
		e[i] = sum(c[i], a[i]);
	}
	difference(d, e, y);
}

static void fill(int8_t *x, unsigned int seed)
{
	for (int i = 0; i < ELEMENTS; i++) {
		seed = seed * 1664525U + 1013904223U;
		x[i] = (int8_t)(seed >> 24);
	}
}

struct task {
	/* 0 ab with its first workspace, 1 ab with its second one, 2 ba. */
	int kind;
	int rc;
	int wrong;
	int done;
};

/* A thread's function: POSIX passes data of any type. */
static void *work(void *argument)
{
	struct task *const task = argument;
	struct ab_workspace *const ab = task->kind == 0 ? &ab_workspace_1 : &ab_workspace_2;
	int8_t x[ELEMENTS], good[ELEMENTS], y[ELEMENTS];

	for (task->done = 0; task->done < runs && task->rc == 0; task->done++) {
		fill(x, (unsigned int)(task->done * 3 + task->kind));
		reference(x, good);
		if (task->kind == 2) {
			memcpy(ba_workspace.input.x, x, ELEMENTS);
			task->rc = ba_run(&(struct ba_inputs){0}, &(struct ba_outputs){.y = y},
					  &ba_workspace, &ba_context);
		} else {
			memcpy(ab->input.x, x, ELEMENTS);
			task->rc = ab_run(&(struct ab_inputs){0}, &(struct ab_outputs){.y = y}, ab,
					  task->kind == 0 ? &ab_context : &ab_context_2);
		}
		task->wrong += memcmp(y, good, ELEMENTS) != 0;
	}
	return NULL;
}

static int race(const char *what, int first, int second)
{
	struct task tasks[] = {{.kind = first}, {.kind = second}};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, work, &tasks[i]) != 0) {
			abort();
		}
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
	}
	printf("%s: %d and %d runs, %d wrong, returned %d and %d\n", what, tasks[0].done,
	       tasks[1].done, tasks[0].wrong + tasks[1].wrong, tasks[0].rc, tasks[1].rc);
	return tasks[0].rc != 0 || tasks[1].rc != 0;
}

int main(int argc, char **argv)
{
	int8_t good[ELEMENTS], y[ELEMENTS];
	int rc;

	runs = argc > 1 ? atoi(argv[1]) : 1;
	alarm(100);
	printf("open %d %d %d\n", ab_open(&ab_workspace_1, &ab_context),
	       ab_open(&ab_workspace_2, &ab_context_2), ba_open(&ba_workspace, &ba_context));
	if (race("opposite orders", 0, 2) != 0) {
		return 1;
	}
	runs = argc > 2 ? atoi(argv[2]) : 1;
	if (race("one model", 0, 1) != 0) {
		return 1;
	}
	rc = other_open(&other_workspace, &other_context);
	printf("another program: open %d, ", rc);
	fill(other_workspace.input.x, 1);
	reference(other_workspace.input.x, good);
	rc = other_run(&(struct other_inputs){0}, &(struct other_outputs){.y = y}, &other_workspace,
		       &other_context);
	printf("run %d, %s, close %d\n", rc, memcmp(y, good, ELEMENTS) == 0 ? "right" : "wrong",
	       other_close(&other_workspace, &other_context));
	printf("close %d %d %d\n", ab_close(&ab_workspace_1, &ab_context),
	       ba_close(&ba_workspace, &ba_context), ab_close(&ab_workspace_2, &ab_context_2));
	return 0;
}
