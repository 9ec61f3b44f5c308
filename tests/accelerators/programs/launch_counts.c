/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of launches at the limits of 16 and 32 bits, on a driver that counts jobs. */
#include <errno.h>

#include <opwest/accelerator.h>
#include <opwest/device_calls.h>

#include "../../compile/programs/cases.h"

static uint32_t jobs, unfinished, waits, least;
static uint16_t depth;
static uint16_t slots_of_jobs[8];

static int info(const struct device *dev, struct opwest_accelerator_info *found)
{
	(void)dev;
	found->queue_depth = depth;
	found->switching = OPWEST_SWITCH_FREE;
	return 0;
}

static uint32_t enqueued(const struct device *dev)
{
	(void)dev;
	return jobs;
}

static int sync_jobs(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	(void)dev;
	(void)timeout_ms;
	waits++;
	least = leave;
	unfinished = unfinished > leave ? leave : unfinished;
	return 0;
}

static void wake(const struct device *dev)
{
	(void)dev;
}

static const struct opwest_accelerator_driver_api api = {
	.info = info, .enqueued = enqueued, .sync = sync_jobs, .wake = wake};
static const struct device dev = {.name = "d", .api = &api};
static const struct opwest_device device_info = {
	.name = "d", .flags = OPWEST_DEVICE_HOOKS, .timeout_ms = 1000, .own_timeout_ms = 1000};
static const struct opwest_device_set set = {.model = "m", .devices = &device_info, .count = 1};

static int32_t adapter(const struct opwest_value *args, const struct opwest_launch *launch)
{
	(void)args;
	slots_of_jobs[jobs % 8U] = launch->slot;
	jobs++;
	unfinished++;
	return 0;
}

static const struct opwest_operator operator_info = {.name = "f", .flags = OPWEST_OPERATOR_ASYNC};
static const struct opwest_requirement requirement = {.call = opwest_call_on_device};
static const struct opwest_entry entry = {
	.info = &operator_info, .adapter = adapter, .requirement = &requirement};

static struct opwest_slot slot = OPWEST_SLOT_INIT;
static struct opwest_status status = OPWEST_STATUS_INIT;
static bool opened = true;
static const struct opwest_call_device call = {
	.set = &set, .slots = &slot, .status = &status, .opened = &opened, .index = 0U};

static void own(uint16_t queue_depth)
{
	depth = queue_depth;
	jobs = unfinished = waits = 0U;
	slot.dev = &dev;
	EXPECT(opwest_devices_activate(&set, &slot, &status) == 0);
	EXPECT(opwest_own(&call) == 0);
}

static void launch(void)
{
	EXPECT(opwest_launch(&entry, NULL, 0, &call) == 0);
}

/* A count of 16 bits was 0 here, and opwest_wait() returned without a wait. */
static void many_launches(void)
{
	own(0U);
	for (uint32_t i = 0; i < 65536U; i++) {
		launch();
	}
	EXPECT(opwest_wait(&call) == 0);
	EXPECT(waits == 1U && least == 0U && unfinished == 0U && jobs == 65536U);
	for (uint32_t i = 0; i < 65537U; i++) {
		launch();
	}
	EXPECT(opwest_release(&call) == 0 && waits == 2U && unfinished == 0U);
}

/* UINT32_MAX unfinished launches are the limit: the oldest one must end first. */
static void most_launches(void)
{
	own(0U);
	launch();
	slot.unfinished = UINT32_MAX - 1U;
	launch();
	EXPECT(waits == 0U && slot.unfinished == UINT32_MAX);
	launch();
	EXPECT(waits == 1U && least == UINT32_MAX - 1U && slot.unfinished == UINT32_MAX);
	EXPECT(opwest_release(&call) == 0 && least == 0U && unfinished == 0U);
}

/* Unfinished launches have different slots, also when the counts of launches and of jobs wrap. */
static void wrapped_counts(void)
{
	own(3U);
	launch();
	slot.count = UINT32_MAX - 1U;
	jobs = UINT32_MAX - 1U;
	for (uint32_t i = 0; i < 9U; i++) {
		launch();
		EXPECT(slots_of_jobs[(jobs - 1U) % 8U] == (i + 1U) % 3U);
		EXPECT((slot.flags & OPWEST_SLOT_UNCOUNTED) == 0U);
		EXPECT(slot.unfinished <= 3U);
	}
	EXPECT(slot.count == 7U && unfinished == 3U && least == 2U);
	EXPECT(opwest_release(&call) == 0 && unfinished == 0U);
}

int main(void)
{
	many_launches();
	most_launches();
	wrapped_counts();
	puts("done");
	return 0;
}
