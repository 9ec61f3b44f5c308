/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of operators on emulated devices by name, without a run. One case per call: by_name CASE.
 * test_fault_injection.py has their order and failures, ownership.c other threads and workspaces.
 */
#include <errno.h>

#include <opwest/npu_emul_host.h>

#include <named.h>

#include "../../compile/programs/cases.h"

#define ELEMENTS 16
#define LINE 32U

#define FIRST  NAMED_DEVICE_FIRST_INDEX
#define SECOND NAMED_DEVICE_SECOND_INDEX
#define THIRD  NAMED_DEVICE_THIRD_INDEX

OPWEST_NPU_EMUL_HOST_DEFINE(npu_first, 20000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_second, 20000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_third, 20000);

NAMED_WORKSPACE_DEFINE(workspace);
static const struct named_devices devices = {
	.first = &npu_first, .second = &npu_second, .third = &npu_third};

/* A write-back cache that records the maintenance. */
static uint32_t line;
struct maintenance {
	char operation;
	const void *data;
	uint32_t size;
};
static struct maintenance maintained[16];
static unsigned int maintenance;

static int maintain(char operation, const void *data, uint32_t size)
{
	EXPECT(maintenance < sizeof(maintained) / sizeof(maintained[0]));
	maintained[maintenance++] = (struct maintenance){operation, data, size};
	return 0;
}

uint32_t opwest_port_cache_line(void)
{
	return line;
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	return maintain('f', data, size);
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	return maintain('b', data, size);
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	return maintain('i', data, size);
}

static OPWEST_ALIGNED(32) int8_t x[2 * ELEMENTS];
static OPWEST_ALIGNED(32) int8_t y[LINE];
static struct opwest_value args[3];

#define AT(index) ((const struct opwest_call_device[]){named_call_device(&workspace, index)})

static int call(const char *name, uint32_t index)
{
	return opwest_call(opwest_find(&named_registry, name), args, 3, AT(index));
}

static int launch(uint32_t index)
{
	return opwest_launch(opwest_find(&named_registry, "launch"), args, 3, AT(index));
}

static void prepare(void)
{
	for (int i = 0; i < 2 * ELEMENTS; i++) {
		x[i] = (int8_t)(3 * i - 20);
	}
	args[0] = opwest_in(OPWEST_INT8, x, ELEMENTS);
	args[1] = args[0];
	args[2] = opwest_out(OPWEST_INT8, y, sizeof(y));
}

static void open_it(void)
{
	EXPECT_CODE(named_open(&workspace, &devices), 0);
}

/* The device was released. */
static void run_and_close(void)
{
	int8_t result[ELEMENTS];

	memcpy(workspace.input.x, x, ELEMENTS);
	EXPECT_CODE(named_run(&(struct named_inputs){0}, &(struct named_outputs){result}, &workspace,
			      &devices), 0);
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

/* The defect of the first version: 0 was returned before the results were written. */
static void expect_result(const char *name, uint32_t index)
{
	memset(y, 0x55, sizeof(y));
	EXPECT_CODE(call(name, index), 0);
	for (int i = 0; i < ELEMENTS; i++) {
		EXPECT(y[i] == 2 * x[i]);
	}
}

/* An operator that requires neither type nor program runs on every device. */
static void case_calls_wait(void)
{
	open_it();
	for (uint32_t i = 0; i < 3; i++) {
		expect_result("launch", FIRST);
		expect_result("launch_anywhere", i);
	}
	run_and_close();
}

static void case_wrong_devices(void)
{
	const struct opwest_entry *const difference = opwest_find(&named_registry, "difference");
	const struct opwest_entry *const entry = opwest_find(&named_registry, "launch");

	EXPECT_CODE(call("launch", FIRST), -EPERM); /* not open */
	EXPECT_CODE(opwest_own(AT(FIRST)), -EPERM);
	open_it();
	EXPECT_CODE(call("launch", SECOND), -ENOEXEC); /* another program */
	EXPECT_CODE(call("launch", THIRD), -EXDEV);    /* another type */
	EXPECT_CODE(call("launch", 3), -EINVAL);
	EXPECT_CODE(opwest_own(AT(3)), -EINVAL);
	EXPECT_CODE(opwest_call(entry, args, 3, NULL), -ENODEV);
	EXPECT_CODE(opwest_launch(entry, args, 3, NULL), -ENODEV);
	EXPECT_CODE(opwest_call(difference, args, 3, NULL), 0);
	EXPECT_CODE(opwest_launch(difference, args, 3, NULL), -ENODEV);
	EXPECT_CODE(opwest_call(difference, args, 3, AT(FIRST)), -ENODEV);
	EXPECT_CODE(opwest_launch(NULL, args, 3, AT(FIRST)), -ENOENT);
	EXPECT_CODE(opwest_launch(entry, args, 2, AT(FIRST)), -EINVAL);
	EXPECT_CODE(opwest_own(AT(SECOND)), 0);
	EXPECT_CODE(launch(SECOND), -ENOEXEC);
	EXPECT_CODE(opwest_release(AT(SECOND)), 0);
	EXPECT(memcmp(entry->requirement->type, "npu", 4) == 0);
	EXPECT(memcmp(entry->requirement->program, "one", 4) == 0);
	EXPECT(difference->requirement == NULL);
	run_and_close();
}

static void expect_maintained(unsigned int index, char operation, const void *data)
{
	EXPECT(index < maintenance && maintained[index].operation == operation);
	EXPECT(maintained[index].data == data && maintained[index].size == LINE);
}

static void case_caches(void)
{
	line = LINE;
	open_it();
	maintenance = 0;
	EXPECT_CODE(call("launch", FIRST), 0);
	EXPECT(maintenance == 4);
	expect_maintained(0, 'f', x);
	expect_maintained(1, 'f', x);
	expect_maintained(2, 'b', y);
	expect_maintained(3, 'i', y);
	/* Data that a device reads may be anywhere: whole lines are written back. */
	args[0].as.in = x + 8;
	args[1].as.in = x + 8;
	maintenance = 0;
	EXPECT_CODE(call("launch", FIRST), 0);
	expect_maintained(0, 'f', x);
	/* Lines that a device writes must not contain anything else. */
	args[2] = opwest_out(OPWEST_INT8, y, ELEMENTS);
	EXPECT_CODE(call("launch", FIRST), -EINVAL);
	args[2] = opwest_out(OPWEST_INT8, y + 8, LINE);
	EXPECT_CODE(call("launch", FIRST), -EINVAL);
	/* A coherent device needs none of it. */
	maintenance = 0;
	EXPECT_CODE(call("launch_anywhere", THIRD), 0);
	EXPECT(maintenance == 0);
	/* A launch does not invalidate the results: the work has not ended. */
	prepare();
	EXPECT_CODE(opwest_own(AT(FIRST)), 0);
	EXPECT_CODE(launch(FIRST), 0);
	EXPECT_CODE(opwest_release(AT(FIRST)), 0);
	EXPECT(maintenance == 3 && maintained[2].operation == 'b');
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

int main(int argc, char **argv)
{
	prepare();
	return RUN_CASES(argc, argv, CASE(calls_wait), CASE(wrong_devices), CASE(caches));
}
