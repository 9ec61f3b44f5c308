/* SPDX-License-Identifier: Apache-2.0 */
/* Guarantees without faults that the conformance suite does not test. */
#include "npu_test.h"

OPWEST_NPU_EMUL_HOST_DEFINE(quick, 0);
OPWEST_NPU_EMUL_HOST_DEFINE(slow, 40000);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(narrow, 20000, 2, 2000, OPWEST_SWITCH_LOAD);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(free_dev, 20000, 4, 1000, OPWEST_SWITCH_FREE);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(load_dev, 20000, 3, 1000, OPWEST_SWITCH_LOAD);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(exclusive_dev, 20000, 2, 1000, OPWEST_SWITCH_EXCLUSIVE);

/* The memory of the arguments may be released as soon as a job is in the queue. */
static void by_value(void)
{
	static const int8_t one[4] = {1, 1, 1, 1};
	struct opwest_npu_emul_conv2d_shape shape = {2, 2, 1, 1, 2, 2, 1, 0};
	int8_t y[1];

	start(&slow, &program_a);
	EXPECT(opwest_npu_emul_conv2d(&slow, CONV, x, one, NULL, y, &shape), 0);
	memset(&shape, 0xff, sizeof(shape));
	EXPECT(opwest_accelerator_sync(&slow, 0U, OPWEST_FOREVER), 0);
	EXPECT(y[0], -2);
	stop(&slow);
}

/* Two devices run different programs. */
static void programs(void)
{
	static const int8_t identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
	static const int32_t bias[4] = {0, 1, 0, -1};
	struct opwest_npu_emul_conv2d_shape shape = {2, 2, 1, 1, 1, 1, 1, 0};
	int8_t y[4];
	int8_t z[4];

	start(&quick, &program_a);
	start(&slow, &program_b);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, x, identity, bias, y, 1, 4, 4), 0);
	EXPECT(opwest_npu_emul_dense(&slow, DENSE, x, identity, bias, z, 1, 4, 4), 0);
	EXPECT(opwest_npu_emul_conv2d(&slow, CONV, x, identity, NULL, z, &shape), -ENOTSUP);
	EXPECT(opwest_npu_emul_relu(&slow, DENSE, x, z, 4), -ENOTSUP);
	EXPECT(opwest_npu_emul_relu(&slow, 77, x, z, 4), -ENOTSUP);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), 0);
	EXPECT(opwest_accelerator_sync(&slow, 0U, 1000), 0);
	expect_bytes(y, 1, -1, 3, -5);
	expect_bytes(z, 2, -1, 5, -7); /* (3 * sum + 1) >> 1 */
	stop(&quick);
	stop(&slow);
}

/* The last deactivation forgets the program. */
static void activation(void)
{
	EXPECT(opwest_accelerator_load(&quick, &program_a), -EPERM);
	EXPECT(opwest_accelerator_sync(&quick, 0U, 0), -EPERM);
	for (int round = 0; round < 3; round++) {
		int8_t y[4];

		EXPECT(opwest_accelerator_activate(&quick), 0);
		EXPECT(opwest_accelerator_open(&quick, 0), 0);
		EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), -EPERM); /* no program */
		EXPECT(opwest_accelerator_load(&quick, &program_a), 0);
		EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), 0);
		EXPECT(opwest_accelerator_sync(&quick, 0U, 1000), 0);
		stop(&quick);
	}
	EXPECT(counts_of(&quick).loaded, 3);
}

static void expect_program(const uint8_t *bytes, uint32_t size, int want)
{
	const struct opwest_program program = {"p", bytes, size};

	EXPECT(opwest_accelerator_check(&quick, &program), want);
}

/* Whether a byte of a program with one kernel may have a value according to the format. */
static int expected(uint32_t at, int value)
{
	static const uint8_t fixed[] = {PROGRAM_HEADER(1)};

	if (at < 16) {
		return fixed[at] == value ? 0 : -EINVAL;
	}
	switch (at - 16) {
	case 2: /* kind */
		return value >= 1 && value <= 4 ? 0 : -EINVAL;
	case 3: /* shift */
		return value <= 47 ? 0 : -EINVAL;
	case 4: /* the lowest byte of the multiplier, whose others are 0 */
		return value > 0 ? 0 : -EINVAL;
	case 7: /* the highest */
		return value < 128 ? 0 : -EINVAL;
	case 11: /* most; least is -128 */
		return 0;
	default:
		return at - 16 < 12 || value == 0 ? 0 : -EINVAL;
	}
}

static void bad_programs(void)
{
	static const uint8_t good[] = {PROGRAM_HEADER(1), PROGRAM_KERNEL(5, 4, 0, 1)};
	static const uint8_t twice[] = {PROGRAM_HEADER(2), PROGRAM_KERNEL(5, 4, 0, 1),
					PROGRAM_KERNEL(5, 1, 0, 1)};
	uint8_t *bytes;

	start(&quick, &program_a);
	EXPECT(opwest_accelerator_check(&quick, NULL), -EINVAL);
	EXPECT(opwest_accelerator_load(&quick, NULL), -EINVAL);
	expect_program(NULL, 0, -EINVAL);
	expect_program(good, sizeof(good), 0);
	expect_program(twice, sizeof(twice), -EINVAL);
	for (uint32_t size = 0; size < sizeof(good); size++) {
		bytes = malloc(size + 1);
		memcpy(bytes, good, size);
		expect_program(bytes, size, -EINVAL);
		free(bytes);
	}
	bytes = malloc(sizeof(good) + 1);
	memcpy(bytes, good, sizeof(good));
	expect_program(bytes, sizeof(good) + 1, -EINVAL);
	for (uint32_t at = 0; at < sizeof(good); at++) {
		for (int value = 0; value < 256; value++) {
			bytes[at] = (uint8_t)value;
			expect_program(bytes, sizeof(good), expected(at, value));
		}
		bytes[at] = good[at];
	}
	bytes[16 + 10] = 5; /* least above most */
	bytes[16 + 11] = 4;
	expect_program(bytes, sizeof(good), -EINVAL);
	free(bytes);
	stop(&quick);
}

static void arguments(void)
{
	static int8_t large[65536];
	struct opwest_npu_emul_conv2d_shape shape = {2, 2, 1, 1, 3, 3, 1, 0};
	int8_t w[16] = {0};
	int8_t y[16];

	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), -EPERM);
	EXPECT(opwest_accelerator_activate(&quick), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), -EPERM);
	EXPECT(opwest_accelerator_open(&quick, 0), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 4), -EPERM);
	EXPECT(opwest_accelerator_load(&quick, &program_a), 0);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, NULL, y, 4), -EINVAL);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, NULL, 4), -EINVAL);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, 0), -EINVAL);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, x, y, (uint32_t)INT32_MAX + 1), -EINVAL);
	EXPECT(opwest_npu_emul_relu(&quick, RELU, y, y + 1, 4), -EINVAL);
	EXPECT(opwest_npu_emul_add(&quick, ADD, x, NULL, y, 4), -EINVAL);
	EXPECT(opwest_npu_emul_add(&quick, ADD, x, y + 1, y, 4), -EINVAL);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, x, w, NULL, y, 0, 4, 4), -EINVAL);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, x, w, NULL, y, 1, 0, 4), -EINVAL);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, x, w, NULL, y, 1, 4, 0), -EINVAL);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, x, NULL, NULL, y, 1, 4, 4), -EINVAL);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, y, w, NULL, y, 1, 4, 4), -EINVAL);
	EXPECT(opwest_npu_emul_dense(&quick, DENSE, x, w, NULL, y, 65535, 65535, 4), -EINVAL);
	EXPECT(opwest_npu_emul_conv2d(&quick, CONV, x, w, NULL, y, NULL), -EINVAL);
	EXPECT(opwest_npu_emul_conv2d(&quick, CONV, x, w, NULL, y, &shape), -EINVAL);
	shape.padding = 1;
	shape.stride = 0;
	EXPECT(opwest_npu_emul_conv2d(&quick, CONV, x, w, NULL, y, &shape), -EINVAL);
	shape = (struct opwest_npu_emul_conv2d_shape){256, 256, 1, 1, 256, 256, 1, 0};
	EXPECT(opwest_npu_emul_conv2d(&quick, CONV, large, large, NULL, y, &shape), -EINVAL);
	shape = (struct opwest_npu_emul_conv2d_shape){1, 1, 1, 65535, 1, 1, 1, 65535};
	EXPECT(opwest_npu_emul_conv2d(&quick, CONV, x, w, NULL, y, &shape), -EINVAL);
	EXPECT(opwest_npu_emul_finish(&quick, -EINVAL, OPWEST_FOREVER), -EINVAL);
	EXPECT(counts_of(&quick).calls[OPWEST_NPU_EMUL_JOB], 0);
	EXPECT(opwest_accelerator_enqueued(&quick), 0);
	stop(&quick);
}

/*
 * Enqueueing waits for a full queue, at most for the timeout of the device. The running job is one
 * of the queue: at most two are unfinished.
 */
static void full_queue(void)
{
	int8_t y[4];
	int64_t from;

	start(&narrow, &program_a);
	from = opwest_port_clock_us();
	for (int i = 0; i < 6; i++) {
		EXPECT(opwest_npu_emul_relu(&narrow, RELU, x, y, 4), 0);
	}
	EXPECT_TRUE(opwest_port_clock_us() - from >= 3 * 20000);
	EXPECT(opwest_accelerator_sync(&narrow, 0U, OPWEST_FOREVER), 0);
	EXPECT(counts_of(&narrow).most, 2);
	stop(&narrow);
}

static void semaphore(void)
{
	struct opwest_port_sem sem;

	opwest_port_sem_init(&sem, 1, 2);
	for (int i = 0; i < 3; i++) {
		opwest_port_sem_give(&sem);
	}
	EXPECT(opwest_port_sem_take(&sem, 0), 0);
	EXPECT(opwest_port_sem_take(&sem, -1), 0);
	EXPECT(opwest_port_sem_take(&sem, 0), -ETIMEDOUT);
	EXPECT(opwest_port_sem_take_until(&sem, opwest_port_clock_us() - 1), -ETIMEDOUT);
	EXPECT(opwest_port_sem_take(&sem, 5), -ETIMEDOUT);
}

/* A context created at run time as on Zephyr, of a driver without programs. */
static void context(void)
{
	struct opwest_accelerator_context alone;

	opwest_accelerator_context_init(&alone);
	EXPECT(opwest_accelerator_context_open(&alone, 0), -EPERM);
	EXPECT(opwest_accelerator_context_activate(&alone, &quick, NULL), 0);
	EXPECT(opwest_accelerator_context_activate(&alone, &quick, NULL), 0);
	EXPECT(opwest_accelerator_context_load(&alone, &quick, NULL, OPWEST_SWITCH_FREE, NULL),
	       -EPERM);
	EXPECT(opwest_accelerator_context_close(&alone), -EPERM);
	EXPECT(opwest_accelerator_context_begin(&alone), -EPERM);
	EXPECT_TRUE(!opwest_accelerator_context_is_mine(&alone));
	EXPECT(opwest_accelerator_context_open(&alone, 0), 0);
	EXPECT_TRUE(opwest_accelerator_context_is_mine(&alone));
	EXPECT(opwest_accelerator_context_open(&alone, 5), -EDEADLK);
	EXPECT(opwest_accelerator_context_load(&alone, &quick, NULL, OPWEST_SWITCH_LOAD, NULL), 0);
	EXPECT(opwest_accelerator_context_load(&alone, &quick, &program_a, OPWEST_SWITCH_LOAD,
					       NULL),
	       0);
	EXPECT(opwest_accelerator_context_close(&alone), 0);
	EXPECT(opwest_accelerator_context_close(&alone), -EPERM);
	EXPECT(opwest_accelerator_context_deactivate(&alone, &quick, NULL), 0);
	EXPECT(opwest_accelerator_context_deactivate(&alone, &quick, NULL), 0);
	EXPECT(opwest_accelerator_context_deactivate(&alone, &quick, NULL), -EPERM);
}

static void info(void)
{
	static const struct device without = {"without", NULL, NULL, NULL};
	struct opwest_accelerator_info info = {.queue_depth = 99U, .switching = 99U};

	EXPECT(opwest_accelerator_info(&free_dev, &info), 0);
	EXPECT(info.queue_depth, 4);
	EXPECT(info.switching, OPWEST_SWITCH_FREE);
	EXPECT(opwest_accelerator_info(&exclusive_dev, &info), 0);
	EXPECT(info.queue_depth, 2);
	EXPECT(info.switching, OPWEST_SWITCH_EXCLUSIVE);
	EXPECT(opwest_accelerator_info(&without, &info), 0);
	EXPECT(info.queue_depth, 0);
	EXPECT(info.switching, OPWEST_SWITCH_LOAD);
}

/* The same bytes at another address are the same program, also while a job runs. */
static void load_again(void)
{
	uint8_t copy[sizeof(bytes_a)];
	const struct opwest_program same = {"other name", copy, sizeof(copy)};
	int8_t y[4];

	memcpy(copy, bytes_a, sizeof(copy));
	start(&load_dev, &program_a);
	EXPECT(opwest_npu_emul_relu(&load_dev, RELU, x, y, 4), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &same), 0);
	EXPECT(opwest_accelerator_sync(&load_dev, 0U, 10000), 0);
	EXPECT(counts_of(&load_dev).loaded, 1);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), 0);
	/* It stays loaded when the owner changes. */
	EXPECT(opwest_accelerator_close(&load_dev), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), -EPERM);
	EXPECT(opwest_accelerator_open(&load_dev, 0), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), 0);
	EXPECT(counts_of(&load_dev).loaded, 2);
	stop(&load_dev);
}

static void equal(void)
{
	static const struct opwest_program none = {"none", NULL, 0U};

	EXPECT_TRUE(opwest_program_equal(NULL, NULL));
	EXPECT_TRUE(!opwest_program_equal(NULL, &program_a));
	EXPECT_TRUE(!opwest_program_equal(&program_a, NULL));
	EXPECT_TRUE(!opwest_program_equal(&program_a, &program_b));
	EXPECT_TRUE(!opwest_program_equal(&program_a, &none));
	EXPECT_TRUE(opwest_program_equal(&program_a, &program_a));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"by_value", by_value},
		{"programs", programs},
		{"activation", activation},
		{"bad_programs", bad_programs},
		{"arguments", arguments},
		{"full_queue", full_queue},
		{"semaphore", semaphore},
		{"context", context},
		{"info", info},
		{"load_again", load_again},
		{"equal", equal},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
