/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: without work, with a time-out, woken. */
#include <errno.h>

#include "cases.h"

#define PROGRAM (opwest_conformance.programs[0])

CASE(idle_wait)
{
	NEED_HOOK(sync);
	START();
	EXPECT(conformance_wait(dev, 0, 0), 0);
	EXPECT(conformance_wait(dev, 0, SHORT_MS), 0);
	EXPECT(conformance_wait(dev, 0, OPWEST_FOREVER), 0);
	EXPECT(conformance_wait(dev, 3, OPWEST_FOREVER), 0);
	STOP();
}

/* A time-out lasts as long as it says, and the work goes on. */
CASE(time_out)
{
	int64_t from;

	NEED_HOOK(sync);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	/* A wake of an earlier case does not end this wait early. */
	EXPECT(conformance_wait(dev, 0, 0), -EAGAIN);
	from = opwest_port_clock_us();
	EXPECT(conformance_wait(dev, 0, SHORT_MS), -ETIMEDOUT);
	EXPECT_TRUE(opwest_port_clock_us() - from >= SHORT_MS * 1000 * 9 / 10);
	opwest_conformance.release(dev);
	EXPECT(conformance_wait(dev, 0, OPWEST_FOREVER), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	STOP();
}

/* Without a wait in progress the next one ends; the one after it waits. */
CASE(wake)
{
	NEED_HOOK(wake);
	NEED_HOOK(sync);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, 0), -EAGAIN);
	opwest_accelerator_wake(dev);
	opwest_accelerator_wake(dev);
	EXPECT(opwest_accelerator_sync(dev, 0, LONG_MS), -EINTR);
	EXPECT(opwest_accelerator_sync(dev, 0, SHORT_MS), -ETIMEDOUT);
	opwest_conformance.release(dev);
	EXPECT(opwest_accelerator_sync(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	STOP();
}

static void wake_later(const struct device *dev)
{
	opwest_port_sleep_us(SHORT_MS * 1000U);
	opwest_accelerator_wake(dev);
}

/* What `<model>_cancel()` does: the owner is woken, and its close() aborts the job. */
CASE(wake_from_thread)
{
	int64_t from;
	int rc;

	NEED_HOOK(wake);
	NEED_HOOK(sync);
	NEED_HOOK(close);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, 0), -EAGAIN);
	EXPECT(conformance_start(wake_later, dev), 0);
	from = opwest_port_clock_us();
	rc = opwest_accelerator_sync(dev, 0, LONG_MS);
	conformance_join();
	EXPECT(rc, -EINTR);
	EXPECT_TRUE(opwest_port_clock_us() - from < LONG_MS * 1000 / 2);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT_TRUE(!opwest_conformance.is_right(dev, 0, PROGRAM));
	EXPECT(conformance_deactivate(dev), 0);
}

CASE(wake_from_interrupt)
{
	int rc;

	NEED_HOOK(wake);
	NEED_HOOK(sync);
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, 0), -EAGAIN);
	NEED(conformance_wake_in_isr(dev), "a host has no interrupts");
	rc = opwest_accelerator_sync(dev, 0, LONG_MS);
	opwest_conformance.release(dev);
	EXPECT(rc, -EINTR);
	EXPECT(opwest_accelerator_sync(dev, 0, LONG_MS), 0);
	STOP();
}
