/* SPDX-License-Identifier: Apache-2.0 */
/* Two workspaces of a model with writable state, without and with threads. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <counting.h>

#include "../../compile/programs/cases.h"

#define THREADS 4
#define ROUNDS 20000

COUNTING_WORKSPACE_DEFINE(first);
COUNTING_WORKSPACE_DEFINE(second);
static const struct counting_devices devices;
static atomic_int owners;
static atomic_int opened;
static atomic_int refused;

static int32_t run(struct counting_workspace *workspace)
{
	int32_t y = -1;

	EXPECT(counting_run(&(struct counting_inputs){&(int32_t){1}}, &(struct counting_outputs){&y},
			    workspace, &devices) == 0);
	return y;
}

static void *compete(void *unused)
{
	struct counting_workspace own = first;

	own.opened = false;
	for (int i = 0; i < ROUNDS; i++) {
		const int rc = counting_open(&own, &devices);

		if (rc == 0) {
			EXPECT(atomic_fetch_add(&owners, 1) == 0);
			(void)run(&own);
			EXPECT(atomic_fetch_sub(&owners, 1) == 1);
			EXPECT(counting_close(&own, &devices) == 0);
			atomic_fetch_add(&opened, 1);
		} else {
			EXPECT(rc == -EBUSY && !own.opened);
			atomic_fetch_add(&refused, 1);
		}
	}
	return unused;
}

static void case_one_is_open(void)
{
	pthread_t threads[THREADS];
	struct counting_workspace unusable = second;

	EXPECT((counting_model.flags & OPWEST_MODEL_STATEFUL) != 0U);
	EXPECT(counting_open(&first, &devices) == 0 && counting_open(&second, &devices) == -EBUSY);
	EXPECT(!second.opened && counting_close(&second, &devices) == -EALREADY);
	EXPECT(counting_open(&first, &devices) == -EALREADY);
	EXPECT(run(&first) == 1 && run(&first) == 2);
	EXPECT(counting_close(&first, &devices) == 0);
	/* An open that fails does not refuse the next one. */
	unusable.sram = NULL;
	EXPECT(counting_open(&unusable, &devices) == -EINVAL);
	EXPECT(counting_open(&second, &devices) == 0 && counting_open(&first, &devices) == -EBUSY);
	EXPECT(run(&second) == 3 && counting_close(&second, &devices) == 0);
	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_create(&threads[i], NULL, compete, NULL) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
	}
	EXPECT(opened > 0 && opened + refused == THREADS * ROUNDS);
	EXPECT(counting_open(&first, &devices) == 0);
	EXPECT(run(&first) == 4 + opened && counting_close(&first, &devices) == 0);
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, CASE(one_is_open));
}
