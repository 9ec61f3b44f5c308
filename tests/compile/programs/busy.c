/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy held | nested | race: one workspace and two threads. The operator calls pause_here(), which a
 * case can stop. Prints the counts of the race, then "done"; or the line of a fault.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include <busy.h>

#include "cases.h"

#define THREADS 2
#define RUNS    20000

struct runner {
	int32_t x[BUSY_INPUT_X_ELEMENTS];
	int32_t y[BUSY_OUTPUT_Y_ELEMENTS];
	int rc;
	uint32_t good;
	uint32_t wrong;
	uint32_t refused;
};

BUSY_WORKSPACE_DEFINE(workspace);
static const struct busy_devices devices = BUSY_DEVICES_DT_INIT;
static struct runner runners[THREADS];
static sem_t inside;
static sem_t leave;
static enum { GO_ON, STOP, NEST } mode;

void pause_here(void);

static int run(struct runner *runner)
{
	return busy_run(&(struct busy_inputs){runner->x}, &(struct busy_outputs){runner->y},
			&workspace, &devices);
}

static int32_t sum_of(const int32_t *x)
{
	int32_t sum = 0;

	for (unsigned int i = 0; i < BUSY_INPUT_X_ELEMENTS; i++) {
		sum += 3 * x[i];
	}
	return sum;
}

static void expect_refusals(void)
{
	static uint8_t saved[BUSY_STATE_SIZE];
	const struct opwest_status before = workspace.status;
	const struct busy_inputs inputs = {runners[1].x};
	const struct busy_outputs outputs = {runners[1].y};
	const struct busy_inputs none = {NULL};

	EXPECT(busy_run(&inputs, &outputs, &workspace, &devices) == -EBUSY);
	EXPECT(busy_run(&none, &outputs, &workspace, &devices) == -EBUSY);
	EXPECT(busy_run(NULL, &outputs, &workspace, &devices) == -EBUSY);
	EXPECT(busy_run(&inputs, NULL, &workspace, &devices) == -EBUSY);
	EXPECT(busy_run(&inputs, &outputs, &workspace, NULL) == -EBUSY);
	EXPECT(busy_open(&workspace, &devices) == -EBUSY);
	EXPECT(busy_open(&workspace, NULL) == -EBUSY);
	EXPECT(busy_close(&workspace, &devices) == -EBUSY);
	EXPECT(busy_close(&workspace, NULL) == -EBUSY);
	EXPECT(busy_reset(&workspace) == -EBUSY);
	EXPECT(busy_save(&workspace, saved, sizeof(saved)) == -EBUSY);
	EXPECT(busy_restore(&workspace, saved, sizeof(saved)) == -EBUSY);
	EXPECT(memcmp(&workspace.status, &before, sizeof(before)) == 0);
	EXPECT(workspace.opened);
	for (size_t i = 0; i < sizeof(saved); i++) {
		EXPECT(saved[i] == 0U);
	}
}

void pause_here(void)
{
	if (mode == STOP) {
		sem_post(&inside);
		sem_wait(&leave);
	} else if (mode == NEST) {
		expect_refusals();
	}
}

static void *run_once(void *argument)
{
	struct runner *const runner = argument;

	runner->rc = run(runner);
	return NULL;
}

/* A run that is stopped in its operator: nothing changes it. */
static void case_held(void)
{
	pthread_t thread;

	mode = STOP;
	EXPECT(pthread_create(&thread, NULL, run_once, &runners[0]) == 0);
	sem_wait(&inside);
	expect_refusals();
	sem_post(&leave);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT(runners[0].rc == 0 && runners[0].y[0] == sum_of(runners[0].x));
	EXPECT(runners[0].y[1] == 1);
}

/* An operator that calls functions of its own workspace. */
static void case_nested(void)
{
	mode = NEST;
	EXPECT(run(&runners[0]) == 0 && runners[0].y[0] == sum_of(runners[0].x));
	EXPECT(runners[0].y[1] == 1);
}

static void *compete(void *argument)
{
	struct runner *const runner = argument;
	const int32_t expected = sum_of(runner->x);

	for (int i = 0; i < RUNS; i++) {
		const int rc = run(runner);

		if (rc == -EBUSY) {
			runner->refused++;
		} else if (rc == 0 && runner->y[0] == expected) {
			runner->good++;
		} else {
			runner->wrong++;
		}
	}
	return NULL;
}

static void case_race(void)
{
	pthread_t threads[THREADS];
	uint32_t good = 0;

	mode = GO_ON;
	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_create(&threads[i], NULL, compete, &runners[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
		good += runners[i].good;
		printf("%lu of %d wrong\n", (unsigned long)runners[i].wrong, RUNS);
		EXPECT(runners[i].good + runners[i].refused + runners[i].wrong == RUNS);
	}
	/* The state counts the runs: no update is lost. */
	EXPECT(run(&runners[0]) == 0 && runners[0].y[1] == (int32_t)good + 1);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 2 && sem_init(&inside, 0, 0) == 0 && sem_init(&leave, 0, 0) == 0);
	for (int32_t i = 0; i < THREADS; i++) {
		for (unsigned int k = 0; k < BUSY_INPUT_X_ELEMENTS; k++) {
			runners[i].x[k] = (i + 1) * (int32_t)(k + 1U);
		}
	}
	EXPECT(busy_open(&workspace, &devices) == 0);
	if (strcmp(argv[1], "held") == 0) {
		case_held();
	} else if (strcmp(argv[1], "nested") == 0) {
		case_nested();
	} else {
		case_race();
	}
	mode = GO_ON;
	EXPECT(run(&runners[1]) == 0 && workspace.status.code == 0);
	EXPECT(busy_close(&workspace, &devices) == 0);
	EXPECT(busy_close(&workspace, &devices) == -EALREADY);
	EXPECT(run(&runners[1]) == -EPERM);
	puts("done");
	return 0;
}
