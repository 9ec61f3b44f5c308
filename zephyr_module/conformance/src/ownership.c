/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions, activations, owners, instances. */
#include <errno.h>

#include "cases.h"

#define TURNS 10

/* Written by the other thread, read after its end, unless they are atomic. */
static int answer;
static int answers[3];
static bool owned;
static bool finish;

static void set(bool *flag, bool value)
{
	__atomic_store_n(flag, value, __ATOMIC_SEQ_CST);
}

static bool get(bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

static void wait_for(bool *flag)
{
	const int64_t end = opwest_port_deadline(LONG_MS);

	while (!get(flag) && opwest_port_clock_us() < end) {
		opwest_port_sleep_us(1000);
	}
}

CASE(description)
{
	struct opwest_accelerator_info first;
	struct opwest_accelerator_info second;

	EXPECT(opwest_accelerator_info(dev, &first), 0);
	EXPECT(opwest_accelerator_info(dev, &second), 0);
	EXPECT_TRUE(first.switching <= OPWEST_SWITCH_EXCLUSIVE);
	EXPECT(second.switching, first.switching);
	EXPECT(second.queue_depth, first.queue_depth);
	EXPECT_TRUE(opwest_conformance.jobs >= OPWEST_CONFORMANCE_JOBS);
	EXPECT_TRUE(!opwest_conformance.is_right(dev, 1, opwest_conformance.programs[0]));
}

CASE(activations)
{
	NEED_HOOK(activate);
	NEED_HOOK(deactivate);
	EXPECT(conformance_deactivate(dev), -EPERM);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(conformance_deactivate(dev), 0);
	/* One is left. */
	EXPECT(opwest_accelerator_open(dev, 0), 0);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT(conformance_deactivate(dev), 0);
	EXPECT(conformance_deactivate(dev), -EPERM);
}

CASE(open_inactive)
{
	NEED_HOOK(activate);
	NEED_HOOK(open);
	EXPECT(opwest_accelerator_open(dev, 0), -EPERM);
	EXPECT(opwest_accelerator_close(dev), -EPERM);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(opwest_accelerator_close(dev), -EPERM);
	EXPECT(opwest_accelerator_open(dev, 0), 0);
	STOP();
	EXPECT(opwest_accelerator_open(dev, 0), -EPERM);
}

static void try_to_own(const struct device *dev)
{
	answers[0] = opwest_accelerator_open(dev, 0);
	answers[1] = opwest_accelerator_open(dev, SHORT_MS);
	set(&owned, true);
	answers[2] = opwest_accelerator_open(dev, LONG_MS);
	answer = answers[2] == 0 ? opwest_accelerator_close(dev) : answers[2];
}

CASE(ownership)
{
	NEED_HOOK(open);
	NEED_HOOK(close);
	START();
	EXPECT(opwest_accelerator_open(dev, 0), -EDEADLK);
	EXPECT(opwest_accelerator_open(dev, OPWEST_FOREVER), -EDEADLK);
	set(&owned, false);
	EXPECT(conformance_start(try_to_own, dev), 0);
	wait_for(&owned);

	const int closed = opwest_accelerator_close(dev);

	conformance_join();
	EXPECT(closed, 0);
	EXPECT(answers[0], -EBUSY);
	EXPECT(answers[1], -EBUSY);
	EXPECT(answers[2], 0);
	EXPECT(answer, 0);
	EXPECT(opwest_accelerator_close(dev), -EPERM);
	EXPECT(conformance_deactivate(dev), 0);
}

static void close_it(const struct device *dev)
{
	answer = opwest_accelerator_close(dev);
}

/* Another thread cannot end the ownership, and its attempt aborts nothing. */
CASE(other_thread)
{
	NEED_HOOK(open);
	NEED_HOOK(close);
	NEED_HOOK(sync);
	NEED_FAULT(HOLD, 0);
	START();
	EXPECT(conformance_launch(dev, 0, opwest_conformance.programs[0]), 0);
	EXPECT(conformance_start(close_it, dev), 0);
	conformance_join();
	EXPECT(answer, -EPERM);
	EXPECT(conformance_wait(dev, 0, 0), -EAGAIN);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, opwest_conformance.programs[0]));
	STOP();
}

/* Own, run two jobs, check them, release; 0 or the first error. */
static int turn(const struct device *dev)
{
	const struct opwest_program *const program = opwest_conformance.programs[0];
	int rc = opwest_accelerator_open(dev, LONG_MS);

	if (rc != 0) {
		return rc;
	}
	conformance_clear(dev);
	rc = opwest_accelerator_load(dev, program);
	for (uint32_t job = 0; job < conformance_jobs(dev, 2) && rc == 0; job++) {
		rc = conformance_launch(dev, job, program);
	}
	if (rc == 0) {
		rc = conformance_wait(dev, 0, LONG_MS);
	}
	for (uint32_t job = 0; job < conformance_jobs(dev, 2) && rc == 0; job++) {
		rc = opwest_conformance.is_right(dev, job, program) ? 0 : -EBADMSG;
	}

	const int closed = opwest_accelerator_close(dev);

	return rc != 0 ? rc : closed;
}

static void take_turns(const struct device *dev)
{
	answer = 0;
	for (int i = 0; i < TURNS && answer == 0; i++) {
		answer = turn(dev);
	}
}

CASE(hand_over)
{
	int rc = 0;

	NEED_HOOK(open);
	NEED_HOOK(close);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(conformance_start(take_turns, dev), 0);
	for (int i = 0; i < TURNS && rc == 0; i++) {
		rc = turn(dev);
	}
	conformance_join();
	EXPECT(rc, 0);
	EXPECT(answer, 0);
	EXPECT(conformance_deactivate(dev), 0);
}

static void own_for_a_while(const struct device *dev)
{
	answers[0] = conformance_priority();
	answer = opwest_accelerator_open(dev, LONG_MS);
	set(&owned, true);
	answers[1] = answers[0];
	while (!get(&finish) && answers[1] == answers[0]) {
		opwest_port_sleep_us(1000);
		answers[1] = conformance_priority();
	}
	if (answer == 0) {
		answer = opwest_accelerator_close(dev);
	}
	answers[2] = conformance_priority();
}

/* A thread that waits raises the priority of the owner, until the owner closes. */
CASE(inheritance)
{
	NEED_HOOK(open);
	NEED(conformance_has_priorities(), "threads of a host have no priorities");
	EXPECT(conformance_activate(dev), 0);
	set(&owned, false);
	set(&finish, false);
	EXPECT(conformance_start(own_for_a_while, dev), 0);
	wait_for(&owned);

	const int rc = opwest_accelerator_open(dev, LONG_MS);

	set(&finish, true);
	conformance_join();
	EXPECT(rc, 0);
	EXPECT(answer, 0);
	EXPECT_TRUE(answers[1] < answers[0]);
	EXPECT(answers[2], answers[0]);
	STOP();
}

/* A job of one device does not end; another device works, and a wake is for one. */
CASE(instances)
{
	const struct device *const second = opwest_conformance.devices[1];
	const struct opwest_program *const program = opwest_conformance.programs[0];

	NEED(opwest_conformance.device_count > 1, "there is one device");
	NEED(dev == opwest_conformance.devices[0], "it runs with the first device");
	NEED_HOOK(sync);
	NEED_FAULT(HOLD, 0);
	START();
	EXPECT(conformance_activate(second), 0);

	const int own = opwest_accelerator_open(second, 0);
	int rc = conformance_launch(dev, 0, program);
	int ran = opwest_accelerator_load(second, program);

	ran = ran == 0 ? conformance_launch(second, 0, program) : ran;
	opwest_accelerator_wake(dev);
	ran = ran == 0 ? opwest_accelerator_sync(second, 0, LONG_MS) : ran;
	rc = rc == 0 ? conformance_wait(dev, 0, 0) : rc;
	opwest_conformance.release(dev);

	const int done = conformance_wait(dev, 0, LONG_MS);
	const int closed = opwest_accelerator_close(second);
	const int stopped = conformance_deactivate(second);

	EXPECT(own, 0);
	EXPECT(ran, 0);
	EXPECT(rc, -EAGAIN);
	EXPECT(done, 0);
	EXPECT(closed, 0);
	EXPECT(stopped, 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, program));
	EXPECT_TRUE(opwest_conformance.is_right(second, 0, program));
	STOP();
}
