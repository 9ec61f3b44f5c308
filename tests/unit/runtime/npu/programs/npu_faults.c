/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that can be injected, after which the device works; wakes; ends of jobs. */
#include <pthread.h>

#include "npu_test.h"

OPWEST_NPU_EMUL_HOST_DEFINE(quick, 0);
OPWEST_NPU_EMUL_HOST_DEFINE(slow, 20000);
OPWEST_NPU_EMUL_HOST_DEFINE(endless, 20000000);

/* Only the call with the injected fault fails, not the calls before and after it. */
static void hook_faults(void)
{
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_POINTS, 0, -EIO), -EINVAL);
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_OPEN, 0, EIO), -EINVAL);
	for (int point = OPWEST_NPU_EMUL_ACTIVATE; point <= OPWEST_NPU_EMUL_DEACTIVATE; point++) {
		opwest_npu_emul_reset(&quick);
		EXPECT(opwest_npu_emul_inject(&quick, (enum opwest_npu_emul_point)point, 1, -EIO),
		       0);
		for (int round = 0; round < 3; round++) {
			int8_t y[4];
#define WANT(which) (round == 1 && point == OPWEST_NPU_EMUL_##which ? -EIO : 0)
			EXPECT(opwest_accelerator_activate(&quick), WANT(ACTIVATE));
			if (WANT(ACTIVATE) != 0) {
				continue;
			}
			EXPECT(opwest_accelerator_check(&quick, &program_a), WANT(CHECK));
			EXPECT(opwest_accelerator_open(&quick, 0), WANT(OPEN));
			if (WANT(OPEN) == 0) {
				EXPECT(opwest_accelerator_load(&quick, &program_a), WANT(LOAD));
				if (WANT(LOAD) != 0) { /* no program is loaded */
					EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4),
					       -EPERM);
					EXPECT(opwest_accelerator_load(&quick, &program_a), 0);
				}
				EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), 0);
				EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), WANT(SYNC));
				expect_bytes(y, 1, 0, 3, 0); /* also after a sync that failed */
				EXPECT(opwest_accelerator_close(&quick), WANT(CLOSE));
			}
			if (WANT(OPEN) != 0 || WANT(CLOSE) != 0) {
				EXPECT(opwest_accelerator_open(&quick, 0), 0);
				EXPECT(opwest_accelerator_close(&quick), 0);
			}
			EXPECT(opwest_accelerator_deactivate(&quick), WANT(DEACTIVATE));
			EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), -EPERM);
#undef WANT
		}
	}
	opwest_npu_emul_reset(&quick);
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_ACTIVATE, 0, -EIO), 0);
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_ACTIVATE, 0, 0), 0);
	start(&quick, &program_a);
	stop(&quick);
}

static void work_faults(void)
{
	int8_t y[3][4];

	start(&quick, &program_a);
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_ENQUEUE, 1, -ENOMEM), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[0], 4), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[0], 4), -ENOMEM);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[0], 4), 0);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), 0);
	for (int job = 0; job < 3; job++) {
		EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_JOB, (uint32_t)job, -EIO), 0);
		for (int i = 0; i < 3; i++) {
			EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[i], 4), 0);
		}
		EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), -EIO);
		EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), 0);
		for (int i = 0; i < 3; i++) {
			EXPECT(y[i][0], i == job ? GARBAGE : 1);
			EXPECT(y[i][3], i == job ? GARBAGE : 0);
		}
	}
	/* The first of several failures is reported. */
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_JOB, 0, -EIO), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[0], 4), 0);
	wait_for_jobs(&quick, 12);
	EXPECT(opwest_npu_emul_inject(&quick, OPWEST_NPU_EMUL_JOB, 0, -ENOMEM), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[0], 4), 0);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), -EIO);
	stop(&quick);
}

static void expect_works(const struct device *dev)
{
	int8_t y[4];

	EXPECT(opwest_npu_emul_finish(dev, opwest_npu_emul_relu(dev, RELU, x, y, 4), 10000), 0);
	expect_bytes(y, 1, 0, 3, 0);
}

/* A hanging job: sync times out; after any way to end it the device works and has not written. */
static void hang(void)
{
	for (int by_deactivate = 0; by_deactivate < 2; by_deactivate++) {
		for (uint32_t job = 0; job < 3; job++) {
			int8_t y[3][4];

			start(&quick, &program_a);
			opwest_npu_emul_reset(&quick);
			opwest_npu_emul_hang(&quick, job);
			memset(y, 7, sizeof(y));
			for (int i = 0; i < 3; i++) {
				EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[i], 4), 0);
			}
			wait_for_jobs(&quick, job + 1);
			EXPECT(opwest_accelerator_sync(&quick, 0U, 30), -ETIMEDOUT);
			EXPECT(opwest_accelerator_sync(&quick, 0U, 0), -EAGAIN);
			if (by_deactivate != 0) {
				EXPECT(opwest_accelerator_deactivate(&quick), 0);
				EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y[0], 4), -EPERM);
				EXPECT(opwest_accelerator_close(&quick), 0);
				EXPECT(opwest_accelerator_activate(&quick), 0);
			} else {
				EXPECT(opwest_accelerator_close(&quick), 0);
			}
			EXPECT(counts_of(&quick).aborted, 3 - (int)job);
			for (uint32_t i = 0; i < 3; i++) {
				EXPECT(y[i][0], i < job ? 1 : i == job ? GARBAGE : 7);
			}
			EXPECT(opwest_accelerator_open(&quick, 0), 0);
			EXPECT(opwest_accelerator_load(&quick, &program_a), 0);
			expect_works(&quick);
			stop(&quick);
		}
	}
}

/* close() ends a job in the middle of its latency, without waiting for the rest of it. */
static void close_early(void)
{
	const int64_t from = opwest_port_clock_us();
	int8_t y[4];

	start(&endless, &program_a);
	for (uint32_t round = 1; round <= 2; round++) {
		EXPECT(opwest_npu_emul_relu(&endless, RELU, x, y, 4), 0);
		EXPECT(opwest_npu_emul_relu(&endless, RELU, x, y, 4), 0);
		EXPECT(opwest_accelerator_sync(&endless, 0U, 10), -ETIMEDOUT);
		EXPECT(opwest_accelerator_close(&endless), 0);
		EXPECT(counts_of(&endless).aborted, 2 * round);
		EXPECT(opwest_accelerator_open(&endless, 0), 0);
	}
	stop(&endless);
	EXPECT_TRUE(opwest_port_clock_us() - from < 20000000);
}

static void relu(const struct device *dev, int8_t *y)
{
	EXPECT(opwest_npu_emul_relu(dev, RELU, x, y, 4), 0);
}

/* A failure is returned once, by the first wait that covers its job or ends after it. */
static void leave_failures(void)
{
	int8_t y[3][4];

	start(&slow, &program_a);
	EXPECT(opwest_npu_emul_inject(&slow, OPWEST_NPU_EMUL_JOB, 0, -EIO), 0);
	for (int i = 0; i < 3; i++) {
		relu(&slow, y[i]);
	}
	EXPECT(opwest_accelerator_sync(&slow, UINT32_MAX, 0), 0);
	EXPECT(opwest_accelerator_sync(&slow, 2U, 10000), -EIO);
	EXPECT(opwest_accelerator_sync(&slow, 0U, 10000), 0);
	expect_bytes(y[2], 1, 0, 3, 0);
	stop(&slow);
}

/* wake() ends the next wait that is not over, and no wait of an operator. */
static void wake_latch(void)
{
	int8_t y[4];

	start(&quick, &program_a);
	opwest_npu_emul_hang(&quick, 0);
	relu(&quick, y);
	wait_for_jobs(&quick, 1U);
	/* A wait that is over does not return -EINTR, and leaves it to the next one. */
	opwest_accelerator_wake(&quick);
	EXPECT(opwest_accelerator_sync(&quick, 1U, OPWEST_FOREVER), 0);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 0), -EINTR);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 0), -EAGAIN);
	/* Operators wait without being woken; their run finds it at its next wait. */
	opwest_accelerator_wake(&quick);
	EXPECT(opwest_npu_emul_finish(&quick, 0, 20), -ETIMEDOUT);
	EXPECT(opwest_accelerator_sync(&quick, 0U, OPWEST_FOREVER), -EINTR);
	stop(&quick);
}

/* What the callback has seen: written by the device's thread. */
static struct {
	struct opwest_port_sem called;
	uint32_t calls;
	const struct device *dev;
	pthread_t thread;
} seen = {.called = OPWEST_PORT_SEM_HOST_INITIALIZER(0, 100)};

static void on_end(const struct device *dev, void *user)
{
	EXPECT_TRUE(user == &seen);
	seen.calls++;
	seen.dev = dev;
	seen.thread = pthread_self();
	opwest_accelerator_wake(dev); /* the only hook that a callback may call */
	opwest_port_sem_give(&seen.called);
}

/* The callback is called once per job, by the device's thread. */
static void notify(void)
{
	int8_t y[4];

	start(&slow, &program_a);
	EXPECT(opwest_accelerator_notify(&slow, on_end, &seen), 0);
	for (int i = 0; i < 3; i++) {
		relu(&slow, y);
	}
	for (int i = 0; i < 3; i++) {
		EXPECT(opwest_port_sem_take(&seen.called, 10000), 0);
	}
	EXPECT(opwest_accelerator_sync(&slow, 0U, 0), 0);
	EXPECT(seen.calls, 3);
	EXPECT_TRUE(seen.dev == &slow);
	EXPECT(pthread_equal(seen.thread, pthread_self()), 0);
	/* Jobs that fail end too. */
	EXPECT(opwest_npu_emul_inject(&slow, OPWEST_NPU_EMUL_JOB, 0, -EIO), 0);
	relu(&slow, y);
	EXPECT(opwest_port_sem_take(&seen.called, 10000), 0);
	EXPECT(opwest_accelerator_sync(&slow, 0U, OPWEST_FOREVER), -EIO);
	EXPECT(seen.calls, 4);
	stop(&slow);
}

/* Aborted jobs end too: the callback is called for each of them. */
static void notify_abort(void)
{
	int8_t y[4];

	start(&quick, &program_a);
	EXPECT(opwest_accelerator_notify(&quick, on_end, &seen), 0);
	opwest_npu_emul_hang(&quick, 0);
	for (int i = 0; i < 3; i++) {
		relu(&quick, y);
	}
	EXPECT(opwest_accelerator_close(&quick), 0);
	EXPECT(seen.calls, 3);
	EXPECT(opwest_accelerator_deactivate(&quick), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"hook_faults", hook_faults},
		{"work_faults", work_faults},
		{"hang", hang},
		{"close_early", close_early},
		{"leave_failures", leave_failures},
		{"wake_latch", wake_latch},
		{"notify", notify},
		{"notify_abort", notify_abort},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
