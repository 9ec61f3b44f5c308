/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated accelerator in the conformance suite: one device of each kind of switching. */
#include <errno.h>

#include <opwest/conformance.h>
#include <opwest/npu_emul.h>

#ifdef __ZEPHYR__
#include <zephyr/device.h>
#else
#include <opwest/npu_emul_host.h>
#endif

#define DEVICES 3
#define JOBS    16
#define SIZE    4

#define ADD   3
#define FAULT (-EIO)

/* Header and one kernel, as make_program.py writes them: kernel 0 adds, then multiplies. */
#define PROGRAM(multiplier)                                                                        \
	{                                                                                          \
		'O', 'N', 'P', 'U', 1, 0, 1, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, ADD, 0,             \
		(multiplier), 0, 0, 0, 0, 0, 0x80, 0x7f, 0, 0, 0, 0,                               \
	}

static const uint8_t bytes[2][32] __attribute__((aligned(16))) = {PROGRAM(1), PROGRAM(2)};
static const struct opwest_program programs[2] = {
	{"once", bytes[0], sizeof(bytes[0])},
	{"twice", bytes[1], sizeof(bytes[1])},
};
static const struct opwest_program truncated = {"truncated", bytes[0], sizeof(bytes[0]) - 1U};

static const int8_t input[SIZE] = {1, -2, 3, -4};
static const int8_t step[SIZE] = {1, 2, 3, 4};
static int8_t results[DEVICES][JOBS][SIZE];

#ifdef __ZEPHYR__
static const struct device *const devices[DEVICES] = {
	DEVICE_DT_GET(DT_NODELABEL(free_npu)),
	DEVICE_DT_GET(DT_NODELABEL(load_npu)),
	DEVICE_DT_GET(DT_NODELABEL(exclusive_npu)),
};
#else
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(free_npu, 1000, 4, 0, OPWEST_SWITCH_FREE);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(load_npu, 1000, 4, 1000, OPWEST_SWITCH_LOAD);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(exclusive_npu, 0, 1, 0, OPWEST_SWITCH_EXCLUSIVE);
static const struct device *const devices[DEVICES] = {&free_npu, &load_npu, &exclusive_npu};
#endif

static uint32_t index_of(const struct device *dev)
{
	uint32_t index = 0;

	while (devices[index] != dev) {
		index++;
	}
	return index;
}

static const int8_t *input_of(const struct device *dev, uint32_t job)
{
	return job == 0U ? input : results[index_of(dev)][job - 1U];
}

static int launch(const struct opwest_launch *launch, uint32_t job)
{
	return opwest_npu_emul_add(launch->dev, 0, input_of(launch->dev, job), step,
				   results[index_of(launch->dev)][job], SIZE);
}

static uint8_t *result(const struct device *dev, uint32_t job, size_t *size)
{
	*size = SIZE;
	return (uint8_t *)results[index_of(dev)][job];
}

static bool is_right(const struct device *dev, uint32_t job, const struct opwest_program *program)
{
	const int8_t *const from = input_of(dev, job);
	const int multiplier = program->data[20];

	for (int i = 0; i < SIZE; i++) {
		const int sum = (from[i] + step[i]) * multiplier;
		const int wanted = sum < INT8_MIN ? INT8_MIN : sum > INT8_MAX ? INT8_MAX : sum;

		if (results[index_of(dev)][job][i] != wanted) {
			return false;
		}
	}
	return true;
}

static int inject(const struct device *dev, enum opwest_conformance_fault fault, uint32_t after)
{
	switch (fault) {
	case OPWEST_CONFORMANCE_HOLD:
		opwest_npu_emul_hang(dev, after);
		return 0;
	case OPWEST_CONFORMANCE_FAIL:
		return opwest_npu_emul_inject(dev, OPWEST_NPU_EMUL_JOB, after, FAULT);
	default:
		return -ENOTSUP; /* its thread ends each job once, after the launch */
	}
}

static void count(const struct device *dev, struct opwest_conformance_counts *counts)
{
	struct opwest_npu_emul_counts all;

	opwest_npu_emul_count(dev, &all);
	counts->loads = all.loaded;
	counts->resumed = all.resumed;
	counts->suspended = all.suspended;
}

const struct opwest_conformance opwest_conformance = {
	.devices = devices,
	.device_count = DEVICES,
	.programs = {&programs[0], &programs[1]},
	.damaged = &truncated,
	.jobs = JOBS,
	.error = FAULT,
	.has_power = true,
	.launch = launch,
	.result = result,
	.is_right = is_right,
	.inject = inject,
	.release = opwest_npu_emul_resume,
	.count = count,
	.reset = opwest_npu_emul_reset,
};
