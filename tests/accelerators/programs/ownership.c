/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that a workspace owns by opwest_own(), and calls that are refused meanwhile. One case per
 * call: ownership CASE.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <opwest/npu_emul_host.h>

#include <owned.h>
#include <single.h>

#include "../../compile/programs/cases.h"

#define ELEMENTS 16
#define ROUNDS   20

#define FIRST  OWNED_DEVICE_FIRST_INDEX
#define SECOND OWNED_DEVICE_SECOND_INDEX
#define SLOW   OWNED_DEVICE_SLOW_INDEX

OPWEST_NPU_EMUL_HOST_DEFINE(npu_first, 30000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_second, 1000);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_slow, 400000);
OWNED_WORKSPACE_DEFINE(workspace);
OWNED_WORKSPACE_DEFINE(other);
OWNED_STREAM_DEFINE(stream);
SINGLE_WORKSPACE_DEFINE(single);
SINGLE_WORKSPACE_DEFINE(single_other);
static const struct owned_devices devices = {
	.first = &npu_first, .second = &npu_second, .slow = &npu_slow};
static const struct single_devices single_devices = {.slow = &npu_slow};

static int8_t x[ELEMENTS];
/* By device. */
static int8_t y[3][ELEMENTS];
static int8_t outcome[ELEMENTS];
static struct opwest_value args[3][3];

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
	return opwest_npu_emul_add(dev, 1, a, b, y, ELEMENTS);
}

/* ---- calls on `target`, for tables of refused calls ---- */

static struct owned_workspace *target = &workspace;

static int own(uint32_t index)
{
	const struct opwest_call_device device = owned_call_device(target, index);

	return opwest_own(&device);
}

static int launch(uint32_t index)
{
	const struct opwest_call_device device = owned_call_device(target, index);

	return opwest_launch(opwest_find(&owned_registry, "launch"), args[index], 3, &device);
}

static int call(uint32_t index)
{
	const struct opwest_call_device device = owned_call_device(target, index);

	return opwest_call(opwest_find(&owned_registry, "launch"), args[index], 3, &device);
}

static int wait_for(uint32_t index)
{
	const struct opwest_call_device device = owned_call_device(target, index);

	return opwest_wait(&device);
}

static int release(uint32_t index)
{
	const struct opwest_call_device device = owned_call_device(target, index);

	return opwest_release(&device);
}

static int run(uint32_t unused)
{
	const struct owned_inputs inputs = {0};
	const struct owned_outputs outputs = {outcome};

	(void)unused;
	return owned_run(&inputs, &outputs, target, &devices);
}

static int open_again(uint32_t unused)
{
	(void)unused;
	return owned_open(target, &devices);
}

static int close_it(uint32_t unused)
{
	(void)unused;
	return owned_close(target, &devices);
}

static int reset(uint32_t unused)
{
	(void)unused;
	return owned_reset(target);
}

static int save(uint32_t unused)
{
	uint8_t data[OWNED_STATE_SIZE];

	(void)unused;
	return owned_save(target, data, sizeof(data));
}

static int restore(uint32_t unused)
{
	const uint8_t data[OWNED_STATE_SIZE] = {0};

	(void)unused;
	return owned_restore(target, data, sizeof(data));
}

static int submit(uint32_t unused)
{
	const struct owned_inputs inputs = {0};
	const struct owned_outputs outputs = {outcome};

	(void)unused;
	return owned_submit(&stream, &inputs, &outputs);
}

static int close_stream(uint32_t unused)
{
	(void)unused;
	return owned_stream_close(&stream);
}

struct refused {
	int (*call)(uint32_t index);
	uint32_t index;
	int code;
};

/* Everything that a refused call must not change. */
struct view {
	struct opwest_slot slots[3];
	struct opwest_status status;
	bool opened;
	uint32_t enqueued;
};

static struct view view(void)
{
	struct view seen;

	memset(&seen, 0, sizeof(seen));
	memcpy(seen.slots, target->slots, sizeof(seen.slots));
	memcpy(&seen.status, &target->status, sizeof(seen.status));
	seen.opened = target->opened;
	seen.enqueued = opwest_accelerator_enqueued(&npu_first);
	return seen;
}

static void expect_refused(const struct refused *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct view before = view();

		EXPECT_CODE(calls[i].call(calls[i].index), calls[i].code);

		const struct view after = view();

		EXPECT(memcmp(&before, &after, sizeof(before)) == 0);
	}
}

#define EXPECT_REFUSED(calls) expect_refused(calls, sizeof(calls) / sizeof((calls)[0]))

static bool is_written(void)
{
	int right = 0;

	for (int i = 0; i < ELEMENTS; i++) {
		right += y[FIRST][i] == 2 * x[i];
	}
	return right == ELEMENTS;
}

static void prepare(void)
{
	for (int i = 0; i < ELEMENTS; i++) {
		x[i] = (int8_t)(3 * i - 20);
	}
	memset(y, 0x55, sizeof(y));
	for (int i = 0; i < 3; i++) {
		args[i][0] = opwest_in(OPWEST_INT8, x, sizeof(x));
		args[i][1] = args[i][0];
		args[i][2] = opwest_out(OPWEST_INT8, y[i], sizeof(y[i]));
	}
}

static void run_and_close(void)
{
	EXPECT_CODE(run(0), 0);
	EXPECT_CODE(close_it(0), 0);
}

/* POSIX passes data of any type. */
static void *start(void *argument)
{
	void (*const *const function)(void) = argument;

	(*function)();
	return NULL;
}

static void on_another_thread(void (*function)(void))
{
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, start, &function) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
}

/* ---- cases ---- */

static void refused_on_another_thread(void)
{
	static const struct refused calls[] = {
		{own, FIRST, -EBUSY}, {own, SECOND, -EBUSY}, {call, FIRST, -EBUSY},
		{call, SECOND, -EBUSY}, {launch, FIRST, -EPERM}, {launch, SECOND, -EPERM},
		{wait_for, FIRST, -EPERM}, {release, FIRST, -EPERM}, {own, 3, -EINVAL},
		{run, 0, -EBUSY}, {close_it, 0, -EBUSY}, {open_again, 0, -EBUSY},
		{reset, 0, -EBUSY}, {save, 0, -EBUSY}, {restore, 0, -EBUSY},
	};

	EXPECT_REFUSED(calls);
}

/* The job in flight ends after the refused calls, and its owner waits for it. */
static void case_refused(void)
{
	static const struct refused calls[] = {
		{own, FIRST, -EALREADY}, {own, 3, -EINVAL}, {launch, SECOND, -EPERM},
		{wait_for, SECOND, -EPERM}, {release, SECOND, -EPERM}, {run, 0, -EBUSY},
		{close_it, 0, -EBUSY}, {open_again, 0, -EBUSY}, {reset, 0, -EBUSY},
		{save, 0, -EBUSY}, {restore, 0, -EBUSY},
	};

	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(launch(FIRST), 0);
	workspace.status.code = -1; /* of an earlier failure */
	EXPECT_REFUSED(calls);
	on_another_thread(refused_on_another_thread);
	EXPECT_CODE(wait_for(FIRST), 0);
	EXPECT(is_written());
	EXPECT_REFUSED(calls); /* without a job in flight too */
	on_another_thread(refused_on_another_thread);
	EXPECT_CODE(release(FIRST), 0);
	EXPECT_CODE(release(FIRST), -EPERM);
	run_and_close();
	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	run_and_close();
}

static int others_code;

static void run_other(void)
{
	others_code = run(0);
}

/* A second workspace with the same devices: its calls fail, and the owner keeps its device. */
static void case_second_workspace(void)
{
	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(launch(FIRST), 0);
	EXPECT_CODE(owned_open(&other, &devices), 0);
	target = &other;
	EXPECT_CODE(own(FIRST), -EDEADLK);
	EXPECT(other.status.code == -EDEADLK && other.status.hook == OPWEST_HOOK_OPEN);
	EXPECT_CODE(call(FIRST), -EDEADLK);
	EXPECT_CODE(launch(FIRST), -EPERM);
	EXPECT_CODE(release(FIRST), -EPERM);
	EXPECT_CODE(run(0), -EDEADLK);
	EXPECT_CODE(call(SECOND), 0);
	on_another_thread(run_other);
	EXPECT_CODE(others_code, -EBUSY);
	EXPECT(other.opened && workspace.status.code == 0);
	EXPECT_CODE(close_it(0), 0); /* the device stays active for the first one */
	target = &workspace;
	EXPECT_CODE(launch(FIRST), 0);
	EXPECT_CODE(wait_for(FIRST), 0);
	EXPECT(is_written());
	EXPECT_CODE(release(FIRST), 0);
	run_and_close();
}

/* A cancellation applies to all devices of a thread, until the last one is released. */
static void case_several_devices(void)
{
	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(own(SECOND), 0);
	EXPECT_CODE(release(SECOND), 0);
	EXPECT_CODE(launch(FIRST), 0);
	EXPECT_CODE(owned_cancel(&workspace), 0);
	EXPECT_CODE(own(SECOND), -ECANCELED);
	EXPECT_CODE(call(SECOND), -ECANCELED);
	EXPECT_CODE(launch(FIRST), -ECANCELED);
	EXPECT_CODE(wait_for(FIRST), -ECANCELED);
	EXPECT_CODE(close_it(0), -EBUSY);
	EXPECT_CODE(release(FIRST), -ECANCELED);
	EXPECT(workspace.opened);
	EXPECT_CODE(release(FIRST), -EPERM);
	EXPECT_CODE(own(SECOND), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(close_it(0), -EBUSY);
	EXPECT_CODE(release(FIRST), 0);
	EXPECT_CODE(run(0), -EBUSY);
	EXPECT_CODE(release(SECOND), 0);
	run_and_close();
}

static void expect_closed(void)
{
	EXPECT(!workspace.opened);
	EXPECT_CODE(own(FIRST), -EPERM);
	EXPECT_CODE(launch(FIRST), -EPERM);
	EXPECT_CODE(wait_for(SLOW), -EPERM);
	EXPECT_CODE(release(FIRST), -EPERM);
	EXPECT_CODE(run(0), -EPERM);
	EXPECT_CODE(reset(0), -EPERM);
	EXPECT_CODE(close_it(0), -EALREADY);
	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	run_and_close();
}

/* A time-out ends the ownership of all devices of the workspace: of a wait, and of a full queue. */
static void case_time_out(void)
{
	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(launch(FIRST), 0);
	EXPECT_CODE(own(SLOW), 0);
	EXPECT_CODE(launch(SLOW), 0);
	EXPECT_CODE(wait_for(SLOW), -ETIMEDOUT);
	expect_closed();
	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	EXPECT_CODE(own(SLOW), 0);
	EXPECT_CODE(launch(SLOW), 0);
	EXPECT_CODE(launch(SLOW), -ETIMEDOUT);
	EXPECT(workspace.status.hook == OPWEST_HOOK_SYNC && workspace.status.device == SLOW);
	expect_closed();
}

/* With `stateful: true` another workspace can be opened after a time-out. */
static void case_stateful(void)
{
	const struct opwest_call_device device =
		single_call_device(&single, SINGLE_DEVICE_SLOW_INDEX);

	EXPECT_CODE(single_open(&single, &single_devices), 0);
	EXPECT_CODE(single_open(&single_other, &single_devices), -EBUSY);
	EXPECT_CODE(opwest_own(&device), 0);
	EXPECT_CODE(single_close(&single, &single_devices), -EBUSY);
	EXPECT_CODE(single_open(&single_other, &single_devices), -EBUSY);
	EXPECT_CODE(opwest_call(opwest_find(&single_registry, "launch"), args[SLOW], 3, &device),
		    -ETIMEDOUT);
	EXPECT_CODE(single_open(&single_other, &single_devices), 0);
	EXPECT_CODE(single_open(&single, &single_devices), -EBUSY);
	EXPECT_CODE(single_close(&single_other, &single_devices), 0);
}

static void case_frames(void)
{
	static const struct refused while_owned[] = {
		{submit, 0, -EBUSY}, {close_stream, 0, -EBUSY}, {run, 0, -EBUSY},
	};
	static const struct refused in_flight[] = {
		{own, FIRST, -EBUSY}, {own, SLOW, -EBUSY}, {call, FIRST, -EBUSY},
		{launch, FIRST, -EPERM}, {wait_for, FIRST, -EPERM}, {release, FIRST, -EPERM},
		{run, 0, -EBUSY}, {close_it, 0, -EBUSY}, {reset, 0, -EBUSY},
		{save, 0, -EBUSY}, {restore, 0, -EBUSY}, {close_stream, 0, -EBUSY},
	};

	target = &stream.workspace;
	EXPECT_CODE(submit(0), -EPERM);
	EXPECT_CODE(owned_stream_open(&stream, &devices), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(launch(FIRST), 0);
	EXPECT_REFUSED(while_owned);
	EXPECT_CODE(owned_poll(&stream, 0, NULL), -EBUSY);
	EXPECT_CODE(wait_for(FIRST), 0);
	EXPECT(is_written());
	EXPECT_CODE(release(FIRST), 0);
	EXPECT_CODE(submit(0), 0);
	EXPECT_REFUSED(in_flight);
	EXPECT_CODE(owned_poll(&stream, 5000, NULL), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT_CODE(release(FIRST), 0);
	EXPECT_CODE(close_stream(0), 0);
}

static atomic_bool ends;
static atomic_int rounds;

/* As refused_on_another_thread(), while the owner uses its device. */
static void *disturb(void *unused)
{
	static const struct refused calls[] = {
		{own, FIRST, -EBUSY}, {own, SECOND, -EBUSY}, {call, SECOND, -EBUSY},
		{launch, FIRST, -EPERM}, {wait_for, FIRST, -EPERM}, {release, FIRST, -EPERM},
		{run, 0, -EBUSY}, {close_it, 0, -EBUSY}, {reset, 0, -EBUSY},
	};

	while (!atomic_load(&ends)) {
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			EXPECT_CODE(calls[i].call(calls[i].index), calls[i].code);
		}
		(void)atomic_fetch_add(&rounds, 1);
	}
	return unused;
}

static void case_threads(void)
{
	pthread_t thread;

	EXPECT_CODE(owned_open(&workspace, &devices), 0);
	EXPECT_CODE(own(FIRST), 0);
	EXPECT(pthread_create(&thread, NULL, disturb, NULL) == 0);
	for (int i = 0; i < ROUNDS || atomic_load(&rounds) < ROUNDS; i++) {
		memset(y[FIRST], 0x55, sizeof(y[FIRST]));
		EXPECT_CODE(launch(FIRST), 0);
		if (i % 4 == 0) {
			EXPECT_CODE(own(SECOND), 0);
			EXPECT_CODE(release(SECOND), 0);
		}
		EXPECT_CODE(wait_for(FIRST), 0);
		EXPECT(is_written());
	}
	atomic_store(&ends, true);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT_CODE(release(FIRST), 0);
	run_and_close();
}

int main(int argc, char **argv)
{
	prepare();
	return RUN_CASES(argc, argv,
			 CASE(refused), CASE(second_workspace), CASE(several_devices), CASE(time_out),
			 CASE(stateful), CASE(frames), CASE(threads));
}
