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

static int8_t x[ELEMENTS], sums[ELEMENTS];
/* By device. */
static int8_t y[3][ELEMENTS];
static int8_t outcome[ELEMENTS];
static struct opwest_value args[3][3];

/* ---- calls on `target`, for tables of refused calls ---- */

static struct owned_workspace *target = &workspace;
static uint8_t saved[OWNED_STATE_SIZE];
static const struct owned_inputs inputs;
static const struct owned_outputs outputs = {outcome};

#define AT(index) ((const struct opwest_call_device[]){owned_call_device(target, index)})
#define CALL(name, expression)                                                                     \
	static int name(uint32_t index)                                                            \
	{                                                                                          \
		(void)index;                                                                       \
		return expression;                                                                 \
	}

CALL(own, opwest_own(AT(index)))
CALL(launch, opwest_launch(opwest_find(&owned_registry, "launch"), args[index], 3, AT(index)))
CALL(call, opwest_call(opwest_find(&owned_registry, "launch"), args[index], 3, AT(index)))
CALL(wait_for, opwest_wait(AT(index)))
CALL(release, opwest_release(AT(index)))
CALL(run, owned_run(&inputs, &outputs, target, &devices))
CALL(open_it, owned_open(target, &devices))
CALL(cancel, owned_cancel(target))
CALL(close_it, owned_close(target, &devices))
CALL(reset, owned_reset(target))
CALL(save, owned_save(target, saved, sizeof(saved)))
CALL(restore, owned_restore(target, saved, sizeof(saved)))
CALL(submit, owned_submit(&stream, &inputs, &outputs))
CALL(open_stream, owned_stream_open(&stream, &devices))
CALL(poll_now, owned_poll(&stream, 0, NULL))
CALL(close_stream, owned_stream_close(&stream))

struct expected {
	int (*call)(uint32_t index);
	uint32_t index;
	int code;
};

static void expect_code(int line, size_t number, const struct expected *expected)
{
	const int code = expected->call(expected->index);

	if (code != expected->code) {
		fprintf(stderr, "line %d, call %zu: %d, expected %d\n", line, number, code,
			expected->code);
		exit(1);
	}
}

static void expect_codes(int line, const struct expected *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		expect_code(line, i, &calls[i]);
	}
}

#define COUNT_OF(calls)        (sizeof(calls) / sizeof((calls)[0]))
#define EXPECT_CODES_OF(calls) expect_codes(__LINE__, calls, COUNT_OF(calls))
#define EXPECT_CODES(...)      EXPECT_CODES_OF(((const struct expected[]){__VA_ARGS__}))
#define EXPECT_REFUSED(calls)  expect_refused(__LINE__, calls, COUNT_OF(calls))
#define RUN_AND_CLOSE          {run, 0, 0}, {close_it, 0, 0}

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

static void expect_refused(int line, const struct expected *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct view before = view();

		expect_code(line, i, &calls[i]);

		const struct view after = view();

		EXPECT(memcmp(&before, &after, sizeof(before)) == 0);
	}
}

static bool is_written(void)
{
	return memcmp(y[FIRST], sums, sizeof(sums)) == 0;
}

static void prepare(void)
{
	for (int i = 0; i < ELEMENTS; i++) {
		x[i] = (int8_t)(3 * i - 20);
		sums[i] = (int8_t)(2 * x[i]);
	}
	memset(y, 0x55, sizeof(y));
	for (int i = 0; i < 3; i++) {
		args[i][0] = opwest_in(OPWEST_INT8, x, sizeof(x));
		args[i][1] = args[i][0];
		args[i][2] = opwest_out(OPWEST_INT8, y[i], sizeof(y[i]));
	}
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

/* Of a thread that is not the owner's. */
static const struct expected for_others[] = {
	{own, FIRST, -EBUSY}, {own, SECOND, -EBUSY}, {call, FIRST, -EBUSY}, {call, SECOND, -EBUSY},
	{launch, FIRST, -EPERM}, {launch, SECOND, -EPERM}, {wait_for, FIRST, -EPERM},
	{release, FIRST, -EPERM}, {own, 3, -EINVAL}, {run, 0, -EBUSY}, {close_it, 0, -EBUSY},
	{open_it, 0, -EBUSY}, {reset, 0, -EBUSY}, {save, 0, -EBUSY}, {restore, 0, -EBUSY},
};

static void refused_on_another_thread(void)
{
	EXPECT_REFUSED(for_others);
}

/* The job in flight ends after the refused calls, and its owner waits for it. */
static void case_refused(void)
{
	static const struct expected calls[] = {
		{own, FIRST, -EALREADY}, {own, 3, -EINVAL}, {launch, SECOND, -EPERM},
		{wait_for, SECOND, -EPERM}, {release, SECOND, -EPERM}, {run, 0, -EBUSY},
		{close_it, 0, -EBUSY}, {open_it, 0, -EBUSY}, {reset, 0, -EBUSY},
		{save, 0, -EBUSY}, {restore, 0, -EBUSY},
	};

	EXPECT_CODES({open_it, 0, 0}, {own, FIRST, 0}, {launch, FIRST, 0});
	workspace.status.code = -1; /* of an earlier failure */
	EXPECT_REFUSED(calls);
	on_another_thread(refused_on_another_thread);
	EXPECT_CODE(wait_for(FIRST), 0);
	EXPECT(is_written());
	EXPECT_REFUSED(calls); /* without a job in flight too */
	on_another_thread(refused_on_another_thread);
	EXPECT_CODES({release, FIRST, 0}, {release, FIRST, -EPERM}, RUN_AND_CLOSE);
	EXPECT_CODES({open_it, 0, 0}, RUN_AND_CLOSE);
}

static void busy_on_another_thread(void)
{
	EXPECT_CODES({run, 0, -EBUSY}, {call, FIRST, -EBUSY});
	EXPECT(target->status.hook == OPWEST_HOOK_OPEN && target->status.code == -EBUSY);
	EXPECT(target->status.device == FIRST);
}

/*
 * A second workspace with the same devices: its calls fail, and the owner keeps its device. On the
 * owner's thread they would wait for ever: they are refused at once.
 */
static void case_second_workspace(void)
{
	EXPECT_CODES({open_it, 0, 0}, {own, FIRST, 0}, {launch, FIRST, 0});
	target = &other;
	EXPECT_CODES({open_it, 0, 0}, {own, FIRST, -EDEADLK});
	EXPECT(other.status.code == -EDEADLK && other.status.hook == OPWEST_HOOK_OPEN);
	EXPECT_CODES({call, FIRST, -EDEADLK}, {launch, FIRST, -EPERM}, {release, FIRST, -EPERM},
		     {run, 0, -EDEADLK}, {call, SECOND, 0});
	on_another_thread(busy_on_another_thread);
	EXPECT(other.opened && workspace.status.code == 0);
	EXPECT_CODE(close_it(0), 0); /* the device stays active for the first one */
	target = &workspace;
	EXPECT_CODES({launch, FIRST, 0}, {wait_for, FIRST, 0});
	EXPECT(is_written());
	EXPECT_CODES({release, FIRST, 0}, RUN_AND_CLOSE);
}

/* A cancellation applies to all devices of a thread, until the last one is released. */
static void case_several_devices(void)
{
	EXPECT_CODES({open_it, 0, 0}, {own, FIRST, 0}, {own, SECOND, 0}, {release, SECOND, 0},
		     {launch, FIRST, 0}, {cancel, 0, 0}, {own, SECOND, -ECANCELED},
		     {call, SECOND, -ECANCELED}, {launch, FIRST, -ECANCELED},
		     {wait_for, FIRST, -ECANCELED}, {close_it, 0, -EBUSY},
		     {release, FIRST, -ECANCELED});
	EXPECT(workspace.opened);
	EXPECT_CODES({release, FIRST, -EPERM}, {own, SECOND, 0}, {own, FIRST, 0},
		     {close_it, 0, -EBUSY}, {release, FIRST, 0}, {run, 0, -EBUSY},
		     {release, SECOND, 0}, RUN_AND_CLOSE);
}

static void expect_closed(void)
{
	EXPECT(!workspace.opened);
	EXPECT_CODES({own, FIRST, -EPERM}, {launch, FIRST, -EPERM}, {wait_for, SLOW, -EPERM},
		     {release, FIRST, -EPERM}, {run, 0, -EPERM}, {reset, 0, -EPERM},
		     {close_it, 0, -EALREADY}, {open_it, 0, 0}, RUN_AND_CLOSE);
}

/* A time-out ends the ownership of all devices of the workspace: of a wait, and of a full queue. */
static void case_time_out(void)
{
	EXPECT_CODES({open_it, 0, 0}, {own, FIRST, 0}, {launch, FIRST, 0}, {own, SLOW, 0},
		     {launch, SLOW, 0}, {wait_for, SLOW, -ETIMEDOUT});
	expect_closed();
	EXPECT_CODES({open_it, 0, 0}, {own, SLOW, 0}, {launch, SLOW, 0},
		     {launch, SLOW, -ETIMEDOUT});
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
	static const struct expected while_owned[] = {
		{submit, 0, -EBUSY}, {close_stream, 0, -EBUSY}, {run, 0, -EBUSY},
		{poll_now, 0, -EBUSY},
	};
	static const struct expected in_flight[] = {
		{own, FIRST, -EBUSY}, {own, SLOW, -EBUSY}, {call, FIRST, -EBUSY},
		{launch, FIRST, -EPERM}, {wait_for, FIRST, -EPERM}, {release, FIRST, -EPERM},
		{run, 0, -EBUSY}, {open_it, 0, -EBUSY}, {close_it, 0, -EBUSY},
		{reset, 0, -EBUSY}, {save, 0, -EBUSY}, {restore, 0, -EBUSY},
		{close_stream, 0, -EBUSY},
	};

	target = &stream.workspace;
	EXPECT_CODES({submit, 0, -EPERM}, {open_stream, 0, 0}, {own, FIRST, 0}, {launch, FIRST, 0});
	EXPECT_REFUSED(while_owned);
	EXPECT_CODE(wait_for(FIRST), 0);
	EXPECT(is_written());
	EXPECT_CODES({release, FIRST, 0}, {submit, 0, 0});
	EXPECT_REFUSED(in_flight);
	EXPECT_CODE(owned_poll(&stream, 5000, NULL), 0);
	EXPECT_CODES({own, FIRST, 0}, {release, FIRST, 0}, {close_stream, 0, 0});
}

static atomic_bool ends;
static atomic_int rounds;

/* As refused_on_another_thread(), while the owner uses its device. */
static void disturb(void)
{
	while (!atomic_load(&ends)) {
		EXPECT_CODES_OF(for_others);
		(void)atomic_fetch_add(&rounds, 1);
	}
}

static void case_threads(void)
{
	void (*function)(void) = disturb;
	pthread_t thread;

	EXPECT_CODES({open_it, 0, 0}, {own, FIRST, 0});
	EXPECT(pthread_create(&thread, NULL, start, &function) == 0);
	for (int i = 0; i < ROUNDS || atomic_load(&rounds) < ROUNDS; i++) {
		memset(y[FIRST], 0x55, sizeof(y[FIRST]));
		EXPECT_CODE(launch(FIRST), 0);
		if (i % 4 == 0) {
			EXPECT_CODES({own, SECOND, 0}, {release, SECOND, 0});
		}
		EXPECT_CODE(wait_for(FIRST), 0);
		EXPECT(is_written());
	}
	atomic_store(&ends, true);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT_CODES({release, FIRST, 0}, RUN_AND_CLOSE);
}

int main(int argc, char **argv)
{
	prepare();
	return RUN_CASES(argc, argv,
			 CASE(refused), CASE(second_workspace), CASE(several_devices), CASE(time_out),
			 CASE(stateful), CASE(frames), CASE(threads));
}
