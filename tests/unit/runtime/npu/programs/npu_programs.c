/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of one device: load() by the kind of switching, and the constant properties. */
#include "npu_test.h"

OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(free_dev, 20000, 4, 1000, OPWEST_SWITCH_FREE);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(load_dev, 20000, 3, 1000, OPWEST_SWITCH_LOAD);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(exclusive_dev, 20000, 2, 1000, OPWEST_SWITCH_EXCLUSIVE);

static const int8_t identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

/* Returns the first result of kernel DENSE: 1 under program A, 2 under B. */
static int dense(const struct device *dev)
{
	int8_t y[4];

	EXPECT(opwest_npu_emul_dense(dev, DENSE, x, identity, NULL, y, 1, 4, 4), 0);
	EXPECT(opwest_accelerator_sync(dev, 0U, 10000), 0);
	return y[0];
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

/* Another program is loaded at any time; jobs in the queue keep theirs. */
static void switch_free(void)
{
	int8_t y[2][4];

	start(&free_dev, &program_a);
	EXPECT(opwest_npu_emul_dense(&free_dev, DENSE, x, identity, NULL, y[0], 1, 4, 4), 0);
	EXPECT(opwest_accelerator_load(&free_dev, &program_b), 0);
	EXPECT(opwest_npu_emul_dense(&free_dev, DENSE, x, identity, NULL, y[1], 1, 4, 4), 0);
	EXPECT(opwest_accelerator_sync(&free_dev, 0U, 10000), 0);
	EXPECT(y[0][0], 1);
	EXPECT(y[1][0], 2);
	EXPECT(counts_of(&free_dev).loaded, 2);
	stop(&free_dev);
}

/* Another program needs an empty queue; the same bytes at another address are the same program. */
static void switch_load(void)
{
	uint8_t copy[sizeof(bytes_a)];
	const struct opwest_program same = {"other name", copy, sizeof(copy)};
	int8_t y[4];

	memcpy(copy, bytes_a, sizeof(copy));
	start(&load_dev, &program_a);
	EXPECT(opwest_npu_emul_relu(&load_dev, RELU, x, y, 4), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), -EBUSY);
	EXPECT(opwest_accelerator_load(&load_dev, &same), 0);
	EXPECT(opwest_accelerator_sync(&load_dev, 0U, 10000), 0);
	EXPECT(counts_of(&load_dev).loaded, 1);
	EXPECT(dense(&load_dev), 1); /* after -EBUSY the program is the same */
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), 0);
	EXPECT(dense(&load_dev), 2);
	/* It stays loaded when the owner changes. */
	EXPECT(opwest_accelerator_close(&load_dev), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), -EPERM);
	EXPECT(opwest_accelerator_open(&load_dev, 0), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), 0);
	EXPECT(counts_of(&load_dev).loaded, 2);
	stop(&load_dev);
}

/* Another program needs a device that no other model has activated. */
static void switch_exclusive(void)
{
	start(&exclusive_dev, &program_a);
	EXPECT(opwest_accelerator_activate(&exclusive_dev), 0);
	EXPECT(opwest_accelerator_load(&exclusive_dev, &program_b), -EBUSY);
	EXPECT(opwest_accelerator_load(&exclusive_dev, &program_a), 0);
	EXPECT(dense(&exclusive_dev), 1);
	EXPECT(opwest_accelerator_deactivate(&exclusive_dev), 0);
	EXPECT(opwest_accelerator_load(&exclusive_dev, &program_b), 0);
	EXPECT(dense(&exclusive_dev), 2);
	stop(&exclusive_dev);
}

/* A load that fails leaves no program: the next load of any program is a new one. */
static void failed_load(void)
{
	static const struct opwest_program bad = {"bad", bytes_a, sizeof(bytes_a) - 1U};
	int8_t y[4];

	start(&load_dev, &program_a);
	EXPECT(opwest_accelerator_load(&load_dev, &bad), -EINVAL);
	EXPECT(opwest_npu_emul_inject(&load_dev, OPWEST_NPU_EMUL_LOAD, 0, -EIO), 0);
	EXPECT(opwest_accelerator_load(&load_dev, &program_b), -EIO);
	EXPECT(opwest_accelerator_load(&load_dev, &program_a), 0);
	EXPECT(opwest_npu_emul_relu(&load_dev, RELU, x, y, 4), 0);
	EXPECT(opwest_accelerator_sync(&load_dev, 0U, 1000), 0);
	expect_bytes(y, 1, 0, 3, 0);
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
		{"info", info},
		{"switch_free", switch_free},
		{"switch_load", switch_load},
		{"switch_exclusive", switch_exclusive},
		{"failed_load", failed_load},
		{"equal", equal},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
