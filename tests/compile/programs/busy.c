/* SPDX-License-Identifier: Apache-2.0 */
/* One workspace and two threads. The operator calls pause_here(), which a case can stop. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include <busy.h>

static void begin(void);
static void end(void);

#define BEFORE_CASE begin
#define AFTER_CASE  end
#include "cases.h"

#define THREADS 2
#define RUNS    20000

struct runner {
	int32_t x[BUSY_INPUT_X_ELEMENTS];
	int32_t y[BUSY_OUTPUT_Y_ELEMENTS];
	int rc;
	uint32_t good;
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

static void expect_first_result(void)
{
	EXPECT(runners[0].y[0] == sum_of(runners[0].x) && runners[0].y[1] == 1);
}

static void expect_refusals(void)
{
	static uint8_t saved[BUSY_STATE_SIZE];
	static const uint8_t zeros[BUSY_STATE_SIZE];
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
	EXPECT(workspace.opened && memcmp(saved, zeros, sizeof(zeros)) == 0);
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
	EXPECT(pthread_join(thread, NULL) == 0 && runners[0].rc == 0);
	expect_first_result();
}

/* An operator that calls functions of its own workspace. */
static void case_nested(void)
{
	mode = NEST;
	EXPECT(run(&runners[0]) == 0);
	expect_first_result();
}

static void *compete(void *argument)
{
	struct runner *const runner = argument;

	for (int i = 0; i < RUNS; i++) {
		const int rc = run(runner);

		runner->refused += rc == -EBUSY;
		runner->good += rc == 0 && runner->y[0] == sum_of(runner->x);
	}
	return NULL;
}

static void case_race(void)
{
	pthread_t threads[THREADS];
	uint32_t good = 0;

	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_create(&threads[i], NULL, compete, &runners[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
		EXPECT(runners[i].good + runners[i].refused == RUNS);
		good += runners[i].good;
	}
	/* The state counts the runs: no update is lost. */
	EXPECT(run(&runners[0]) == 0 && runners[0].y[1] == (int32_t)good + 1);
}

static void begin(void)
{
	EXPECT(sem_init(&inside, 0, 0) == 0 && sem_init(&leave, 0, 0) == 0);
	for (int32_t i = 0; i < THREADS; i++) {
		for (unsigned int k = 0; k < BUSY_INPUT_X_ELEMENTS; k++) {
			runners[i].x[k] = (i + 1) * (int32_t)(k + 1U);
		}
	}
	EXPECT(busy_open(&workspace, &devices) == 0);
}

static void end(void)
{
	mode = GO_ON;
	EXPECT(run(&runners[1]) == 0 && workspace.status.code == 0);
	EXPECT(busy_close(&workspace, &devices) == 0);
	EXPECT(busy_close(&workspace, &devices) == -EALREADY);
	EXPECT(run(&runners[1]) == -EPERM);
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, CASE(held), CASE(nested), CASE(race));
}
