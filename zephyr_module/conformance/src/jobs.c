/* SPDX-License-Identifier: Apache-2.0 */
/* The order of jobs, and the ways in which they end. */
#include <errno.h>

#include "cases.h"

#define PROGRAM (opwest_conformance.programs[0])

/* Written by a callback, in a thread or an interrupt. */
static uint32_t notified;
static uint32_t in_isr;
static bool is_wrong_argument;
/* The held job may have ended. */
static bool released;

static void on_end(const struct device *dev, void *user)
{
	if (user != &notified || dev == NULL) {
		__atomic_store_n(&is_wrong_argument, true, __ATOMIC_SEQ_CST);
	}
	if (conformance_in_isr()) {
		__atomic_add_fetch(&in_isr, 1U, __ATOMIC_SEQ_CST);
	}
	__atomic_add_fetch(&notified, 1U, __ATOMIC_SEQ_CST);
}

static uint32_t load(const uint32_t *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

/* A callback may run after the wait for its job. */
static uint32_t notified_up_to(uint32_t wanted)
{
	const int64_t end = opwest_port_deadline(LONG_MS);

	while (load(&notified) < wanted && opwest_port_clock_us() < end) {
		opwest_port_sleep_us(1000);
	}
	opwest_port_sleep_us(SHORT_MS * 1000U);
	return load(&notified);
}

static int start_notifying(const struct device *dev)
{
	__atomic_store_n(&notified, 0U, __ATOMIC_SEQ_CST);
	__atomic_store_n(&in_isr, 0U, __ATOMIC_SEQ_CST);
	__atomic_store_n(&is_wrong_argument, false, __ATOMIC_SEQ_CST);
	return opwest_accelerator_notify(dev, on_end, &notified);
}

/* Every job reads the result of the one before it, without a wait between them. */
CASE(order)
{
	const uint32_t jobs = opwest_conformance.jobs;
	uint32_t launched = 0;

	START();
	while (launched < jobs) {
		const int rc = conformance_launch(dev, launched, PROGRAM);

		if (rc == -EAGAIN) {
			EXPECT_TRUE(launched > 0);
			EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
		} else {
			EXPECT(rc, 0);
			launched++;
		}
	}
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT_TRUE(opwest_conformance.is_right(dev, job, PROGRAM));
	}
	STOP();
}

/* A job that has ended before anything waits for it. */
CASE(early)
{
	START();
	NEED_FAULT(EARLY, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(opwest_accelerator_sync(dev, 0, 0), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	EXPECT(conformance_launch(dev, 1, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 1, PROGRAM));
	STOP();
}

/* A job that ends after a wait has timed out is waited for again. */
CASE(late)
{
	NEED_HOOK(sync);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, 0), -EAGAIN);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	EXPECT_TRUE(!opwest_conformance.is_right(dev, 0, PROGRAM));
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	STOP();
}

/* The second signal of one job is not the end of the next one. */
CASE(twice)
{
	NEED_HOOK(sync);
	START();
	NEED_FAULT(TWICE, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	opwest_port_sleep_us(SHORT_MS * 1000U);
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 1, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 1, PROGRAM));
	/* The same with the next job in the queue: the held first one lets it get there. */
	NEED(conformance_jobs(dev, 3) == 3, "the queue has less than three jobs");
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	NEED_FAULT(TWICE, 0);
	NEED_FAULT(HOLD, 1);
	EXPECT(conformance_launch(dev, 1, PROGRAM), 0);
	EXPECT(conformance_launch(dev, 2, PROGRAM), 0);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 1, LONG_MS), 0);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	for (uint32_t job = 0; job < 3U; job++) {
		EXPECT_TRUE(opwest_conformance.is_right(dev, job, PROGRAM));
	}
	STOP();
}

/* Jobs that end in an interrupt, while a thread waits and while none does. */
CASE(interrupt)
{
	NEED(opwest_conformance.ends_in_isr, "jobs of the device end in a thread");
	NEED(conformance_has_priorities(), "a host has no interrupts");
	NEED_HOOK(notify);
	START();
	EXPECT(start_notifying(dev), 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT(conformance_launch(dev, 1, PROGRAM), 0);
	EXPECT(notified_up_to(2), 2);
	EXPECT(opwest_accelerator_sync(dev, 0, 0), 0);
	EXPECT(load(&in_isr), 2);
	STOP();
}

/* A wait that leaves jobs: those before them have ended, the held one has not. */
CASE(leave)
{
	const uint32_t jobs = conformance_jobs(dev, OPWEST_CONFORMANCE_JOBS);

	NEED_HOOK(sync);
	NEED(jobs > 1, "the queue has one job");
	START();
	NEED_FAULT(HOLD, jobs - 1U);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
	}
	EXPECT(conformance_wait(dev, jobs, 0), 0);
	for (uint32_t left = jobs - 1U; left > 0U; left--) {
		EXPECT(conformance_wait(dev, left, LONG_MS), 0);
		EXPECT_TRUE(opwest_conformance.is_right(dev, jobs - 1U - left, PROGRAM));
	}
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, jobs - 1U, PROGRAM));
	STOP();
}

/* The count begins at 0 with the ownership, and adds one for every launch. */
CASE(enqueued)
{
	NEED_HOOK(enqueued);
	START();
	EXPECT(opwest_accelerator_enqueued(dev), 0);
	for (uint32_t job = 0; job < 3U; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
		EXPECT(opwest_accelerator_enqueued(dev), job + 1U);
		EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
		EXPECT(opwest_accelerator_enqueued(dev), job + 1U);
	}
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_enqueued(dev), 0);
	STOP();
}

static void release_later(const struct device *dev)
{
	opwest_port_sleep_us(SHORT_MS * 1000U);
	__atomic_store_n(&released, true, __ATOMIC_SEQ_CST);
	opwest_conformance.release(dev);
}

/* One launch more than the queue has room for: it is rejected, or blocks until there is room. */
CASE(full_queue)
{
	const uint32_t depth = conformance_depth(dev);
	bool had_room;
	int rc;

	NEED_HOOK(enqueued);
	NEED(depth != 0U, "the driver sets no limit of its queue");
	NEED(depth < opwest_conformance.jobs, "the queue is deeper than the jobs of the adapter");
	START();
	NEED_FAULT(HOLD, 0);
	for (uint32_t job = 0; job < depth; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
	}
	/* A driver that blocks would wait for the held job. */
	__atomic_store_n(&released, false, __ATOMIC_SEQ_CST);
	EXPECT(conformance_start(release_later, dev), 0);
	rc = conformance_launch(dev, depth, PROGRAM);
	had_room = rc != 0 || __atomic_load_n(&released, __ATOMIC_SEQ_CST);
	if (rc == -EAGAIN) {
		const uint32_t count = opwest_accelerator_enqueued(dev);

		rc = conformance_wait(dev, depth - 1U, LONG_MS);
		rc = rc == 0 && count != depth ? -EBADMSG : rc;
		rc = rc == 0 ? conformance_launch(dev, depth, PROGRAM) : rc;
	}
	conformance_join();
	EXPECT(rc, 0);
	EXPECT_TRUE(had_room);
	EXPECT(opwest_accelerator_enqueued(dev), depth + 1U);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	for (uint32_t job = 0; job <= depth; job++) {
		EXPECT_TRUE(opwest_conformance.is_right(dev, job, PROGRAM));
	}
	STOP();
}

/* One call for every job, until the callback is removed or the ownership ends. */
CASE(notify)
{
	NEED_HOOK(notify);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(opwest_accelerator_notify(dev, on_end, &notified), -EPERM);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	EXPECT(start_notifying(dev), 0);
	for (uint32_t job = 0; job < 3U; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
		EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	}
	EXPECT(notified_up_to(3), 3);
	EXPECT_TRUE(!is_wrong_argument);
	EXPECT(opwest_accelerator_notify(dev, NULL, NULL), 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT(notified_up_to(3), 3);
	EXPECT(start_notifying(dev), 0);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT(notified_up_to(0), 0);
	STOP();
}
