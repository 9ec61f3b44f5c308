/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time power management, as models use it. */
#include <errno.h>

#include <opwest/devices.h>

#include "cases.h"

#define PROGRAM (opwest_conformance.programs[0])

#define NEED_POWER()                                                                               \
	do {                                                                                       \
		NEED(conformance_has_power(), "there is no run-time power management");            \
		NEED(opwest_conformance.has_power, "the device has no run-time power management"); \
		NEED(opwest_conformance.count != NULL, "the adapter does not count");              \
	} while (0)

static struct opwest_conformance_counts since(const struct device *dev,
					      const struct opwest_conformance_counts *before)
{
	struct opwest_conformance_counts now = {0};

	opwest_conformance.count(dev, &now);
	now.loads -= before->loads;
	now.resumed -= before->resumed;
	now.suspended -= before->suspended;
	return now;
}

/* Uses are counted: the first one resumes, the last one suspends. */
CASE(power_counts)
{
	struct opwest_conformance_counts before = {0};

	NEED_POWER();
	opwest_conformance.count(dev, &before);
	EXPECT(opwest_port_device_power(dev, true), 0);
	EXPECT(since(dev, &before).resumed, 1);
	EXPECT(opwest_port_device_power(dev, true), 0);
	EXPECT(opwest_port_device_power(dev, false), 0);
	EXPECT(since(dev, &before).resumed, 1);
	EXPECT(since(dev, &before).suspended, 0);
	EXPECT(opwest_port_device_power(dev, false), 0);
	EXPECT(since(dev, &before).suspended, 1);
}

/* Open a model with one step on the device, run it twice, close the model. */
static void use(struct conformance_check *check, const struct device *dev, uint16_t flags,
		uint32_t runs)
{
	const struct opwest_device device = {
		.name = "device",
		.timeout_ms = LONG_MS,
		.own_timeout_ms = LONG_MS,
		.first_step = 0U,
		.last_step = 1U,
		.flags = (uint16_t)(OPWEST_DEVICE_HOOKS | flags),
	};
	const struct opwest_device_use uses = {.program = PROGRAM, .device = 0U};
	const struct opwest_device_set set = {
		.model = "conformance",
		.devices = &device,
		.uses = &uses,
		.count = 1U,
		.use_count = 1U,
	};
	struct opwest_slot slot = OPWEST_SLOT_INIT;
	struct opwest_status status = OPWEST_STATUS_INIT;

	slot.dev = dev;
	EXPECT(opwest_devices_activate(&set, &slot, &status), 0);
	for (uint32_t run = 0; run < runs; run++) {
		conformance_clear(dev);
		opwest_devices_begin(&set, &slot);
		EXPECT(opwest_devices_acquire(&set, &slot, &status, 0U), 0);
		EXPECT(opwest_devices_prepare(&set, &slot, &status, 0U, 0U), 0);
		EXPECT(opwest_conformance.launch(&slot.launch, 0U), 0);
		opwest_devices_launched(&slot, 0U);
		EXPECT(opwest_devices_sync(&set, &slot, &status, 0U, 0U), 0);
		EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
		EXPECT(opwest_devices_release(&set, &slot, &status, 0U), 0);
	}
	EXPECT(opwest_devices_deactivate(&set, &slot, &status), 0);
}

/* `power: open`: one use from open to close of the model. */
CASE(power_open)
{
	struct opwest_conformance_counts before = {0};

	NEED_POWER();
	opwest_conformance.count(dev, &before);
	use(check, dev, 0U, 2U);
	if (check->wrong == NULL) {
		EXPECT(since(dev, &before).resumed, 1);
		EXPECT(since(dev, &before).suspended, 1);
	}
}

/* `power: run`: the opening and every run are uses of their own. */
CASE(power_run)
{
	struct opwest_conformance_counts before = {0};
	struct opwest_conformance_counts empty;
	uint32_t resumed;

	NEED_POWER();
	opwest_conformance.count(dev, &before);
	use(check, dev, OPWEST_DEVICE_POWER_RUN, 0U);
	empty = since(dev, &before);
	if (check->wrong == NULL) {
		EXPECT(empty.suspended, empty.resumed);
		opwest_conformance.count(dev, &before);
		use(check, dev, OPWEST_DEVICE_POWER_RUN, 3U);
	}
	if (check->wrong == NULL) {
		resumed = since(dev, &before).resumed;
		EXPECT(resumed, empty.resumed + 3U);
		EXPECT(since(dev, &before).suspended, resumed);
	}
}

/* A device that loses its program when it is suspended loads it again. */
CASE(power_loses_program)
{
	NEED_POWER();
	NEED(PROGRAM != NULL, "the adapter has no program");
	START();
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT(opwest_port_device_power(dev, false), 0);
	EXPECT(opwest_port_device_power(dev, true), 0);
	EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);
	EXPECT(opwest_accelerator_load(dev, PROGRAM), 0);
	conformance_clear(dev);
	EXPECT(conformance_launch(dev, 0, PROGRAM), 0);
	EXPECT(conformance_wait(dev, 0, LONG_MS), 0);
	EXPECT_TRUE(opwest_conformance.is_right(dev, 0, PROGRAM));
	STOP();
}
