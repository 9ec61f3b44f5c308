/* SPDX-License-Identifier: Apache-2.0 */
/* A thread runs the model, another one gets -EBUSY; then both compete for the workspace. */
#include <errno.h>

#include <zephyr/kernel.h>

#include <busy.h>
#include <busy_devicetree.h>

#define THREADS 2
#define RUNS    300
#define STACK   2048

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printk("line %d: %s\n", __LINE__, #condition);                             \
			k_panic();                                                                 \
		}                                                                                  \
	} while (false)

struct runner {
	int32_t x[BUSY_INPUT_X_ELEMENTS];
	int32_t y[BUSY_OUTPUT_Y_ELEMENTS];
	uint32_t good;
	uint32_t wrong;
	uint32_t refused;
};

BUSY_WORKSPACE_DEFINE(workspace);
static const struct busy_devices devices = BUSY_DEVICES_DT_INIT;
static struct runner runners[THREADS];
static struct k_thread threads[THREADS];
static K_THREAD_STACK_ARRAY_DEFINE(stacks, THREADS, STACK);
static K_SEM_DEFINE(inside, 0, 1);
static K_SEM_DEFINE(leave, 0, 1);
static bool stops;

void pause_here(void);

void pause_here(void)
{
	if (stops) {
		k_sem_give(&inside);
		(void)k_sem_take(&leave, K_FOREVER);
	} else {
		k_yield();
	}
}

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

static void compete(void *argument, void *times, void *unused)
{
	struct runner *const runner = argument;

	ARG_UNUSED(unused);
	for (intptr_t i = 0; i < (intptr_t)times; i++) {
		const int rc = run(runner);

		if (rc == -EBUSY) {
			runner->refused++;
			k_yield();
		} else if (rc == 0 && runner->y[0] == sum_of(runner->x)) {
			runner->good++;
		} else {
			runner->wrong++;
		}
	}
}

static void start(int index, intptr_t times)
{
	(void)k_thread_create(&threads[index], stacks[index], STACK, compete, &runners[index],
			      (void *)times, NULL, K_LOWEST_APPLICATION_THREAD_PRIO, 0, K_NO_WAIT);
}

int main(void)
{
	for (int32_t i = 0; i < THREADS; i++) {
		for (unsigned int k = 0; k < BUSY_INPUT_X_ELEMENTS; k++) {
			runners[i].x[k] = (i + 1) * (int32_t)(k + 1U);
		}
	}
	CHECK(busy_open(&workspace, &devices) == 0);
	stops = true;
	start(0, 1);
	(void)k_sem_take(&inside, K_FOREVER);
	CHECK(run(&runners[1]) == -EBUSY);
	CHECK(busy_close(&workspace, &devices) == -EBUSY);
	k_sem_give(&leave);
	(void)k_thread_join(&threads[0], K_FOREVER);
	CHECK(runners[0].good == 1U && runners[0].y[1] == 1);
	stops = false;
	for (int i = 0; i < THREADS; i++) {
		start(i, RUNS);
	}
	for (int i = 0; i < THREADS; i++) {
		(void)k_thread_join(&threads[i], K_FOREVER);
	}
	CHECK(runners[0].refused + runners[1].refused > 0U);
	CHECK(run(&runners[0]) == 0);
	CHECK(runners[0].y[1] == (int32_t)(runners[0].good + runners[1].good + 1U));
	CHECK(busy_close(&workspace, &devices) == 0);
	printk("one workspace, two threads: %u wrong\n", runners[0].wrong + runners[1].wrong);
	return 0;
}
