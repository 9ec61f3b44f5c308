/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: checks, loads, and what another program costs. */
#include <errno.h>

#include "cases.h"

#define FIRST  (opwest_conformance.programs[0])
#define SECOND (opwest_conformance.programs[1])

#define NEED_PROGRAMS() NEED(SECOND != NULL, "the adapter has no second program")

static enum opwest_switching switching_of(const struct device *dev)
{
	struct opwest_accelerator_info info;

	(void)opwest_accelerator_info(dev, &info);
	return (enum opwest_switching)info.switching;
}

static uint32_t loads_of(const struct device *dev)
{
	struct opwest_conformance_counts counts = {0};

	opwest_conformance.count(dev, &counts);
	return counts.loads;
}

/* Load, run one job, wait; 0 or the first error, -EBADMSG for a wrong result. */
static int run_with(const struct device *dev, const struct opwest_program *program, uint32_t job)
{
	int rc = opwest_accelerator_load(dev, program);

	rc = rc == 0 ? conformance_launch(dev, job, program) : rc;
	rc = rc == 0 ? conformance_wait(dev, 0, LONG_MS) : rc;
	return rc == 0 && !opwest_conformance.is_right(dev, job, program) ? -EBADMSG : rc;
}

/* check() names it; a load that fails leaves no program, and the next load works. */
CASE(damaged_program)
{
	const struct opwest_program *const damaged = opwest_conformance.damaged;

	NEED(damaged != NULL, "the adapter has no damaged program");
	NEED_HOOK(check);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(opwest_accelerator_check(dev, FIRST), 0);
	EXPECT(opwest_accelerator_check(dev, damaged), -EINVAL);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(run_with(dev, FIRST, 0), 0);
	EXPECT_TRUE(opwest_accelerator_load(dev, damaged) < 0);
	conformance_clear(dev);
	EXPECT(run_with(dev, FIRST, 0), 0);
	STOP();
}

/* A program that is loaded, or another one with the same bytes, is not loaded again. */
CASE(load_again)
{
	struct opwest_program copy;
	uint32_t before;

	NEED(FIRST != NULL, "the adapter has no program");
	NEED(opwest_conformance.count != NULL, "the adapter does not count");
	NEED_HOOK(load);
	START();
	copy = *FIRST;
	before = loads_of(dev);
	EXPECT(run_with(dev, FIRST, 0), 0);
	EXPECT(run_with(dev, &copy, 1), 0);
	EXPECT(loads_of(dev), before);
	STOP();
}

/* Programs in turn, each with its own results. */
CASE(reprogramming)
{
	NEED_PROGRAMS();
	NEED_HOOK(load);
	EXPECT(conformance_activate(dev), 0);
	EXPECT(opwest_accelerator_check(dev, FIRST), 0);
	EXPECT(opwest_accelerator_check(dev, SECOND), 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	for (uint32_t job = 0; job < OPWEST_CONFORMANCE_JOBS; job++) {
		EXPECT(run_with(dev, job % 2U == 0U ? FIRST : SECOND, job), 0);
	}
	STOP();
}

/* With a job in the queue: rejected, or, if switching is free, each job has its own program. */
CASE(load_busy)
{
	const bool is_free = switching_of(dev) == OPWEST_SWITCH_FREE;
	int rc;

	NEED_PROGRAMS();
	NEED_HOOK(load);
	NEED(!is_free || conformance_jobs(dev, 2) == 2, "the queue has one job");
	START();
	NEED_FAULT(HOLD, 0);
	EXPECT(conformance_launch(dev, 0, FIRST), 0);
	rc = opwest_accelerator_load(dev, SECOND);
	if (is_free && rc == 0) {
		rc = conformance_launch(dev, 1, SECOND);
	}
	opwest_conformance.release(dev);
	EXPECT(rc, is_free ? 0 : -EBUSY);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, FIRST));
	if (is_free) {
		EXPECT_TRUE(opwest_conformance.is_right(dev, 1, SECOND));
	}
	EXPECT(run_with(dev, SECOND, 2), 0);
	STOP();
}

/* Another program while a second model has the device active. */
CASE(exclusive)
{
	const bool is_exclusive = switching_of(dev) == OPWEST_SWITCH_EXCLUSIVE;

	NEED_PROGRAMS();
	NEED_HOOK(load);
	START();
	EXPECT(conformance_activate(dev), 0);
	EXPECT(opwest_accelerator_load(dev, SECOND), is_exclusive ? -EBUSY : 0);
	/* The program that is loaded stays usable. */
	EXPECT(run_with(dev, FIRST, 0), 0);
	EXPECT(conformance_deactivate(dev), 0);
	EXPECT(run_with(dev, SECOND, 1), 0);
	STOP();
}
