/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of Arm Ethos-U in the conformance suite: two simulated NPUs. */
#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <ethosu_driver.h>
#include <opwest/conformance.h>
#include <opwest/ethos_u.h>

#include "ethos_u_registers.h"

#define JOBS 16

SIMULATED_PROGRAM(one, 1, 1, FINE);
SIMULATED_PROGRAM(three, 3, 1, FINE);

/* The index of the addend in the words of a program. */
#define ADDEND 9

/* Without NPU_OP_STOP. */
static const struct opwest_program truncated = {"truncated", (const uint8_t *)one_words,
						sizeof(one_words) - sizeof(one_words[0])};

static const struct device *const devices[SIMULATED_NPUS] = {
	DEVICE_DT_GET(DT_NODELABEL(npu0)),
	DEVICE_DT_GET(DT_NODELABEL(npu1)),
};
static const uint8_t input[SIMULATED_SIZE] __aligned(16) = {0, 1, 2, 250, 251, 252, 253, 254, 255};
static uint8_t results[SIMULATED_NPUS][JOBS][SIMULATED_SIZE] __aligned(16);
static bool is_early[SIMULATED_NPUS];
static struct opwest_conformance_counts counts[SIMULATED_NPUS];

static uint32_t index_of(const struct device *dev)
{
	return dev == devices[0] ? 0U : 1U;
}

static const uint8_t *input_of(const struct device *dev, uint32_t job)
{
	return job == 0U ? input : results[index_of(dev)][job - 1U];
}

static int launch(const struct opwest_launch *launch, uint32_t job)
{
	const uint32_t index = index_of(launch->dev);
	const struct simulated_npu *const npu = &simulated_npus[index];
	const uint32_t runs = npu->runs;
	const struct opwest_ethos_u_inference inference = {
		.count = 2,
		.regions = {{input_of(launch->dev, job), SIMULATED_SIZE},
			    {results[index][job], SIMULATED_SIZE}},
	};
	const int rc = opwest_ethos_u_enqueue(launch, &inference);

	while (rc == 0 && is_early[index] && (npu->runs == runs || npu->is_busy)) {
		k_msleep(1);
	}
	is_early[index] = false;
	return rc;
}

static uint8_t *result(const struct device *dev, uint32_t job, size_t *size)
{
	*size = SIMULATED_SIZE;
	return results[index_of(dev)][job];
}

static bool is_right(const struct device *dev, uint32_t job, const struct opwest_program *program)
{
	const uint8_t *const from = input_of(dev, job);
	const uint32_t added = ((const uint32_t *)program->data)[ADDEND];

	for (int i = 0; i < SIMULATED_SIZE; i++) {
		if (results[index_of(dev)][job][i] != (uint8_t)(from[i] + added)) {
			return false;
		}
	}
	return true;
}

static int inject(const struct device *dev, enum opwest_conformance_fault fault, uint32_t after)
{
	struct simulated_npu *const npu = &simulated_npus[index_of(dev)];

	switch (fault) {
	case OPWEST_CONFORMANCE_HOLD:
		simulated_npu_inject(npu, SIMULATED_HOLD, after);
		return 0;
	case OPWEST_CONFORMANCE_FAIL:
		simulated_npu_inject(npu, SIMULATED_FAIL, after);
		return 0;
	case OPWEST_CONFORMANCE_EARLY:
		is_early[index_of(dev)] = true;
		return after == 0U ? 0 : -ENOTSUP;
	case OPWEST_CONFORMANCE_TWICE:
		return -ENOTSUP; /* a stopped NPU raises no interrupt until it is started again */
	}
	return -ENOTSUP;
}

static void release(const struct device *dev)
{
	simulated_npu_release(&simulated_npus[index_of(dev)]);
}

/* The power requests of the driver under test. The vendor's driver has those of inferences. */
int __real_ethosu_request_power(struct ethosu_driver *driver);
void __real_ethosu_release_power(struct ethosu_driver *driver);

static struct opwest_conformance_counts *counts_of(const struct ethosu_driver *driver)
{
	return &counts[driver == opwest_ethos_u_driver(devices[0]) ? 0 : 1];
}

int __wrap_ethosu_request_power(struct ethosu_driver *driver)
{
	const int rc = __real_ethosu_request_power(driver);

	counts_of(driver)->resumed += driver->power_request_counter == 1U ? 1U : 0U;
	return rc;
}

void __wrap_ethosu_release_power(struct ethosu_driver *driver)
{
	counts_of(driver)->suspended += driver->power_request_counter == 1U ? 1U : 0U;
	__real_ethosu_release_power(driver);
}

static void count(const struct device *dev, struct opwest_conformance_counts *all)
{
	*all = counts[index_of(dev)];
	all->loads = simulated_npus[index_of(dev)].loads;
}

static void reset(const struct device *dev)
{
	simulated_npu_forget(&simulated_npus[index_of(dev)]);
	is_early[index_of(dev)] = false;
}

const struct opwest_conformance opwest_conformance = {
	.devices = devices,
	.device_count = SIMULATED_NPUS,
	.programs = {&one, &three},
	.damaged = &truncated,
	.jobs = JOBS,
	.error = -EIO,
	/* The vendor's interrupt handler gives a semaphore; the driver's thread ends the job. */
	.ends_in_isr = false,
	.has_power = true,
	.launch = launch,
	.result = result,
	.is_right = is_right,
	.inject = inject,
	.release = release,
	.count = count,
	.reset = reset,
};
