/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a part of the queue, their early end, and the callback at the end of a job. */
#include <pthread.h>

#include "npu_test.h"

OPWEST_NPU_EMUL_HOST_DEFINE(quick, 0);
OPWEST_NPU_EMUL_HOST_DEFINE(slow, 20000);

static void relu(const struct device *dev, int8_t *y)
{
	EXPECT(opwest_npu_emul_relu(dev, RELU, x, y, 4), 0);
}

static void hang_first(const struct device *dev, int8_t *y)
{
	opwest_npu_emul_hang(dev, 0);
	relu(dev, y);
	wait_for_jobs(dev, 1U);
}

/* The number of jobs begins at 0 for every owner, and counts only jobs in the queue. */
static void enqueued(void)
{
	int8_t y[4];

	start(&quick, &program_a);
	EXPECT(opwest_accelerator_enqueued(&quick), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		relu(&quick, y);
		EXPECT(opwest_accelerator_enqueued(&quick), i);
	}
	EXPECT(opwest_npu_emul_relu(&quick, RELU, NULL, y, 4), -EINVAL);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), 0);
	EXPECT(opwest_accelerator_enqueued(&quick), 3);
	EXPECT(opwest_accelerator_close(&quick), 0);
	EXPECT(opwest_accelerator_open(&quick, 0), 0);
	EXPECT(opwest_accelerator_enqueued(&quick), 0);
	stop(&quick);
}

/* A wait for all jobs but the last ones ends while these continue. */
static void leave(void)
{
	int8_t y[4][4];

	start(&slow, &program_a);
	memset(y, 7, sizeof(y));
	opwest_npu_emul_hang(&slow, 2);
	for (int i = 0; i < 4; i++) {
		relu(&slow, y[i]);
	}
	EXPECT(opwest_accelerator_sync(&slow, 4U, 0), 0);
	EXPECT(opwest_accelerator_sync(&slow, 0U, 0), -EAGAIN);
	EXPECT(opwest_accelerator_sync(&slow, 3U, 10000), 0);
	expect_bytes(y[0], 1, 0, 3, 0);
	EXPECT(opwest_accelerator_sync(&slow, 2U, 10000), 0);
	expect_bytes(y[1], 1, 0, 3, 0);
	EXPECT(opwest_accelerator_sync(&slow, 1U, 30), -ETIMEDOUT);
	EXPECT(opwest_accelerator_sync(&slow, 1U, 0), -EAGAIN);
	EXPECT(opwest_accelerator_sync(&slow, 2U, 0), 0);
	EXPECT(opwest_accelerator_sync(&slow, UINT32_MAX, 0), 0);
	EXPECT(y[3][0], 7);
	stop(&slow);
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
	EXPECT(opwest_accelerator_sync(&slow, 2U, 10000), -EIO);
	EXPECT(opwest_accelerator_sync(&slow, 0U, 10000), 0);
	expect_bytes(y[2], 1, 0, 3, 0);
	stop(&slow);
}

/* wake() before a wait ends it at once; it ends one wait, whatever its number of calls. */
static void wake_latch(void)
{
	int8_t y[4];

	start(&quick, &program_a);
	hang_first(&quick, y);
	opwest_accelerator_wake(&quick);
	opwest_accelerator_wake(&quick);
	EXPECT(opwest_accelerator_sync(&quick, 0U, OPWEST_FOREVER), -EINTR);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 20), -ETIMEDOUT);
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

static void *wake_later(void *unused)
{
	opwest_port_sleep_us(40000);
	opwest_accelerator_wake(&quick);
	return unused;
}

static void wake_thread(void)
{
	const int64_t from = opwest_port_clock_us();
	pthread_t thread;
	int8_t y[4];

	start(&quick, &program_a);
	hang_first(&quick, y);
	EXPECT(pthread_create(&thread, NULL, wake_later, NULL), 0);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 20000), -EINTR);
	EXPECT(pthread_join(thread, NULL), 0);
	EXPECT_TRUE(opwest_port_clock_us() - from >= 40000);
	EXPECT_TRUE(opwest_port_clock_us() - from < 10000000);
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

/* The callback is called once per job, by the device's thread, until it or the ownership ends. */
static void notify(void)
{
	int8_t y[4];

	EXPECT(opwest_accelerator_notify(&slow, on_end, &seen), -EPERM);
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
	EXPECT(opwest_accelerator_notify(&slow, NULL, NULL), 0);
	relu(&slow, y);
	EXPECT(opwest_npu_emul_finish(&slow, 0, 10000), 0);
	EXPECT(seen.calls, 4);
	/* The end of ownership removes it. */
	EXPECT(opwest_accelerator_notify(&slow, on_end, &seen), 0);
	EXPECT(opwest_accelerator_close(&slow), 0);
	EXPECT(opwest_accelerator_open(&slow, 0), 0);
	relu(&slow, y);
	EXPECT(opwest_npu_emul_finish(&slow, 0, 10000), 0);
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
		{"enqueued", enqueued},
		{"leave", leave},
		{"leave_failures", leave_failures},
		{"wake_latch", wake_latch},
		{"wake_thread", wake_thread},
		{"notify", notify},
		{"notify_abort", notify_abort},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
