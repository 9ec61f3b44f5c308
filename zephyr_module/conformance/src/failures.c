/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that fail, hang, or are aborted. */
#include <errno.h>

#include "cases.h"

#define PROGRAM (opwest_conformance.programs[0])

/* One wait returns the error; the next job and the next owner have none. */
CASE(error)
{
	NEED_HOOK(sync);
	START();
	NEED_FAULT(FAIL, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), opwest_conformance.error);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	/* An error that no wait has returned ends with the ownership. */
	NEED_FAULT(FAIL, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	opwest_port_sleep_us(SHORT_MS * 1000U);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	STOP();
}

/* All jobs of a queue end, also those after the one that failed. */
CASE(error_in_queue)
{
	const uint32_t jobs = conformance_jobs(dev, OPWEST_CONFORMANCE_JOBS);

	NEED_HOOK(sync);
	NEED(jobs > 1, "the queue has one job");
	START();
	NEED_FAULT(FAIL, 1);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
	}
	EXPECT(conformance_wait(dev, 0, LONG_MS), opwest_conformance.error);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	EXPECT(conformance_wait(dev, 0, 0), 0);
	STOP();
}

/* close() aborts a job that never ends; then the device works again. */
CASE(hang)
{
	NEED_HOOK(sync);
	NEED_HOOK(close);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT_TRUE(!opwest_conformance.is_right(dev, 0, PROGRAM));
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(conformance_wait(dev, 0, 0), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	STOP();
}

/* After close() nothing of a full queue is written. */
CASE(abort_queue)
{
	const uint32_t jobs = conformance_jobs(dev, OPWEST_CONFORMANCE_JOBS);

	NEED_HOOK(close);
	START();
	NEED_FAULT(HOLD, 0);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
	}
	EXPECT(opwest_accelerator_close(dev), 0);
	conformance_clear(dev);
	opwest_conformance.release(dev);
	opwest_port_sleep_us(SHORT_MS * 1000U);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT_TRUE(conformance_is_clear(dev, job));
	}
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT(conformance_launch(dev, job, PROGRAM), 0);
	}
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	for (uint32_t job = 0; job < jobs; job++) {
		EXPECT_TRUE(opwest_conformance.is_right(dev, job, PROGRAM));
	}
	STOP();
}

/* A job of one owner, aborted, does not end a job of the next owner. */
CASE(late_after_close)
{
	NEED_HOOK(sync);
	NEED_HOOK(close);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(opwest_accelerator_close(dev), 0);
	NEED_FAULT(HOLD, 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	STOP();
}

CASE(launch_without_owner)
{
	NEED_HOOK(open);
	EXPECT(conformance_activate(dev), 0);
	EXPECT_TRUE(conformance_launch(dev, 0, PROGRAM) < 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, 0), 0);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT_TRUE(conformance_launch(dev, 0, PROGRAM) < 0);
	EXPECT(conformance_deactivate(dev), 0);
	EXPECT_TRUE(conformance_is_clear(dev, 0));
}
