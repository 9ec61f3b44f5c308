/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of operators on emulated devices by name, without a run. One case per call: by_name CASE.
 */
#include <errno.h>
#include <pthread.h>

#include <opwest/npu_emul_host.h>

#include <named.h>

#include "../../compile/programs/cases.h"

#define ELEMENTS 16
#define LINE 32U

OPWEST_NPU_EMUL_HOST_DEFINE(npu_first, 20000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_second, 20000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_third, 20000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_slow, 600000);

NAMED_WORKSPACE_DEFINE(workspace);
static const struct named_devices devices = {
	.first = &npu_first, .second = &npu_second, .third = &npu_third, .slow = &npu_slow};

/* A write-back cache that records the maintenance. */
static uint32_t line;
static struct {
	char operation;
	const void *data;
	uint32_t size;
} maintained[16];
static unsigned int maintenance;

static int maintain(char operation, const void *data, uint32_t size)
{
	EXPECT(maintenance < sizeof(maintained) / sizeof(maintained[0]));
	maintained[maintenance].operation = operation;
	maintained[maintenance].data = data;
	maintained[maintenance].size = size;
	maintenance++;
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

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
	return opwest_npu_emul_add(dev, 1, a, b, y, ELEMENTS);
}

static OPWEST_ALIGNED(32) int8_t x[2 * ELEMENTS];
static OPWEST_ALIGNED(32) int8_t y[LINE];
static OPWEST_ALIGNED(32) int8_t z[LINE];
static struct opwest_value args[3];
static struct opwest_value more[3];

static struct opwest_call_device at(uint32_t index)
{
	return named_call_device(&workspace, index);
}

static int call(const char *name, uint32_t index)
{
	const struct opwest_call_device device = at(index);

	return opwest_call(opwest_find(&named_registry, name), args, 3, &device);
}

static int launch(const struct opwest_value *values, uint32_t index)
{
	const struct opwest_call_device device = at(index);

	return opwest_launch(opwest_find(&named_registry, "launch"), values, 3, &device);
}

static int own(uint32_t index)
{
	const struct opwest_call_device device = at(index);

	return opwest_own(&device);
}

static int wait_for(uint32_t index)
{
	const struct opwest_call_device device = at(index);

	return opwest_wait(&device);
}

static int release(uint32_t index)
{
	const struct opwest_call_device device = at(index);

	return opwest_release(&device);
}

static bool is_written(const int8_t *result)
{
	int right = 0;

	for (int i = 0; i < ELEMENTS; i++) {
		right += result[i] == 2 * x[i];
	}
	return right == ELEMENTS;
}

static void prepare(void)
{
	for (int i = 0; i < 2 * ELEMENTS; i++) {
		x[i] = (int8_t)(3 * i - 20);
	}
	memset(y, 0x55, sizeof(y));
	memset(z, 0x55, sizeof(z));
	args[0] = opwest_in(OPWEST_INT8, x, ELEMENTS);
	args[1] = args[0];
	args[2] = opwest_out(OPWEST_INT8, y, sizeof(y));
	memcpy(more, args, sizeof(args));
	more[2] = opwest_out(OPWEST_INT8, z, sizeof(z));
}

static void run_model(void)
{
	int8_t result[ELEMENTS];
	const struct named_inputs inputs = {0};
	const struct named_outputs outputs = {result};

	memcpy(workspace.input.x, x, ELEMENTS);
	EXPECT_CODE(named_run(&inputs, &outputs, &workspace, &devices), 0);
}

/* The defect of the first version: 0 was returned before the results were written. */
static void case_call_waits(void)
{
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	for (int i = 0; i < 3; i++) {
		memset(y, 0x55, sizeof(y));
		EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), 0);
		EXPECT(is_written(y));
	}
	run_model(); /* the device was released */
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

static void case_launch_does_not_wait(void)
{
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	EXPECT_CODE(launch(args, NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(wait_for(NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(release(NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(own(NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT_CODE(own(NAMED_DEVICE_FIRST_INDEX), -EALREADY);
	EXPECT_CODE(launch(args, NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT_CODE(launch(more, NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(!is_written(z)); /* two jobs take 40 ms */
	EXPECT_CODE(wait_for(NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(is_written(y) && is_written(z));
	EXPECT_CODE(wait_for(NAMED_DEVICE_FIRST_INDEX), 0);
	/* A call uses the device of its owner and does not release it. */
	memset(y, 0, sizeof(y));
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(is_written(y));
	/* Release waits for launched work. */
	memset(z, 0x55, sizeof(z));
	EXPECT_CODE(launch(more, NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT_CODE(release(NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(is_written(z));
	EXPECT_CODE(release(NAMED_DEVICE_FIRST_INDEX), -EPERM);
	run_model();
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

static void case_wrong_devices(void)
{
	const struct opwest_entry *const difference = opwest_find(&named_registry, "difference");
	const struct opwest_entry *const entry = opwest_find(&named_registry, "launch");
	struct opwest_call_device device;

	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), -EPERM); /* not open */
	EXPECT_CODE(own(NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	EXPECT_CODE(call("launch", NAMED_DEVICE_SECOND_INDEX), -ENOEXEC); /* another program */
	EXPECT_CODE(call("launch", NAMED_DEVICE_THIRD_INDEX), -EXDEV);    /* another type */
	EXPECT_CODE(call("launch", 4), -EINVAL);
	EXPECT_CODE(own(4), -EINVAL);
	EXPECT_CODE(opwest_call(entry, args, 3, NULL), -ENODEV);
	EXPECT_CODE(opwest_launch(entry, args, 3, NULL), -ENODEV);
	EXPECT_CODE(opwest_call(difference, args, 3, NULL), 0);
	EXPECT_CODE(opwest_launch(difference, args, 3, NULL), -ENODEV);
	device = at(NAMED_DEVICE_FIRST_INDEX);
	EXPECT_CODE(opwest_call(difference, args, 3, &device), -ENODEV);
	EXPECT_CODE(opwest_launch(NULL, args, 3, &device), -ENOENT);
	EXPECT_CODE(opwest_launch(entry, args, 2, &device), -EINVAL);
	EXPECT_CODE(own(NAMED_DEVICE_SECOND_INDEX), 0);
	EXPECT_CODE(launch(args, NAMED_DEVICE_SECOND_INDEX), -ENOEXEC);
	EXPECT_CODE(release(NAMED_DEVICE_SECOND_INDEX), 0);
	EXPECT(memcmp(entry->requirement->type, "npu", 4) == 0);
	EXPECT(memcmp(entry->requirement->program, "one", 4) == 0);
	EXPECT(difference->requirement == NULL);
	run_model();
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

/* An operator that requires neither type nor program runs on every device. */
static void case_any_device(void)
{
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	for (uint32_t i = 0; i < 3; i++) {
		memset(y, 0x55, sizeof(y));
		EXPECT_CODE(call("launch_anywhere", i), 0);
		EXPECT(is_written(y));
	}
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

/* The device hangs: nothing may write into the caller's memory after the call. */
static void case_time_out(void)
{
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	EXPECT_CODE(own(NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT_CODE(call("launch", NAMED_DEVICE_SLOW_INDEX), -ETIMEDOUT);
	EXPECT(!workspace.opened);
	EXPECT(workspace.status.code == -ETIMEDOUT && workspace.status.hook == OPWEST_HOOK_SYNC);
	EXPECT(workspace.status.device == NAMED_DEVICE_SLOW_INDEX);
	EXPECT(workspace.status.step == OPWEST_NO_STEP);
	EXPECT_CODE(launch(args, NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(is_written(y));
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

static int called;

/* A thread's function: POSIX passes data of any type. */
static void *call_slow(void *unused)
{
	called = call("launch", NAMED_DEVICE_SLOW_INDEX);
	return unused;
}

/*
 * Another owner of the device, here another workspace, makes a call on another thread wait for
 * own_timeout_ms. On its own thread it would wait for ever: it is refused.
 */
static void case_another_owner(void)
{
	pthread_t thread;

	static struct named_workspace other;

	memcpy(&other, &workspace, sizeof(other));
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	EXPECT_CODE(named_open(&other, &devices), 0);

	const struct opwest_call_device theirs = named_call_device(&other, NAMED_DEVICE_SLOW_INDEX);

	EXPECT_CODE(opwest_own(&theirs), 0);
	EXPECT(pthread_create(&thread, NULL, call_slow, NULL) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT_CODE(called, -EBUSY);
	EXPECT(workspace.opened);
	EXPECT(workspace.status.hook == OPWEST_HOOK_OPEN && workspace.status.code == -EBUSY);
	EXPECT(workspace.status.device == NAMED_DEVICE_SLOW_INDEX);
	EXPECT_CODE(call("launch", NAMED_DEVICE_SLOW_INDEX), -EDEADLK);
	EXPECT(workspace.opened && workspace.status.code == -EDEADLK);
	EXPECT_CODE(opwest_release(&theirs), 0);
	EXPECT_CODE(named_close(&other, &devices), 0);
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

static void expect_maintained(unsigned int index, char operation, const void *data, uint32_t size)
{
	EXPECT(index < maintenance && maintained[index].operation == operation);
	EXPECT(maintained[index].data == data && maintained[index].size == size);
}

static void case_caches(void)
{
	line = LINE;
	EXPECT_CODE(named_open(&workspace, &devices), 0);
	maintenance = 0;
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(maintenance == 4);
	expect_maintained(0, 'f', x, LINE);
	expect_maintained(1, 'f', x, LINE);
	expect_maintained(2, 'b', y, LINE);
	expect_maintained(3, 'i', y, LINE);
	/* Data that a device reads may be anywhere: whole lines are written back. */
	args[0].as.in = x + 8;
	args[1].as.in = x + 8;
	maintenance = 0;
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), 0);
	expect_maintained(0, 'f', x, LINE);
	/* Lines that a device writes must not contain anything else. */
	args[2] = opwest_out(OPWEST_INT8, y, ELEMENTS);
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), -EINVAL);
	args[2] = opwest_out(OPWEST_INT8, y + 8, LINE);
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), -EINVAL);
	/* A coherent device needs none of it. */
	maintenance = 0;
	EXPECT_CODE(call("launch_anywhere", NAMED_DEVICE_THIRD_INDEX), 0);
	EXPECT(maintenance == 0);
	/* A launch does not invalidate the results: the work has not ended. */
	prepare();
	EXPECT_CODE(own(NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT_CODE(launch(args, NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT_CODE(release(NAMED_DEVICE_FIRST_INDEX), 0);
	EXPECT(maintenance == 3 && maintained[2].operation == 'b');
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

/* Another function of the workspace runs: calls by name return -EBUSY and change nothing. */
static void case_busy(void)
{
	const struct named_inputs inputs = {0};
	const struct named_outputs outputs = {z};
	struct opwest_slot slots[sizeof(workspace.slots) / sizeof(workspace.slots[0])];
	struct opwest_status status;

	EXPECT_CODE(named_open(&workspace, &devices), 0);
	EXPECT(opwest_port_take(&workspace.running));
	memcpy(slots, workspace.slots, sizeof(slots));
	status = workspace.status;
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), -EBUSY);
	EXPECT_CODE(launch(args, NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(wait_for(NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(release(NAMED_DEVICE_FIRST_INDEX), -EPERM);
	EXPECT_CODE(own(NAMED_DEVICE_SECOND_INDEX), -EBUSY);
	EXPECT_CODE(own(4), -EINVAL);
	EXPECT_CODE(named_run(&inputs, &outputs, &workspace, &devices), -EBUSY);
	EXPECT_CODE(named_close(&workspace, &devices), -EBUSY);
	EXPECT(memcmp(slots, workspace.slots, sizeof(slots)) == 0);
	EXPECT(memcmp(&status, &workspace.status, sizeof(status)) == 0);
	opwest_port_give(&workspace.running);
	EXPECT_CODE(call("launch", NAMED_DEVICE_FIRST_INDEX), 0);
	run_model();
	EXPECT_CODE(named_close(&workspace, &devices), 0);
}

int main(int argc, char **argv)
{
	prepare();
	return RUN_CASES(argc, argv,
			 CASE(call_waits), CASE(launch_does_not_wait), CASE(wrong_devices), CASE(any_device),
			 CASE(time_out), CASE(another_owner), CASE(caches), CASE(busy));
}
