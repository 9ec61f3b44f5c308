/* SPDX-License-Identifier: Apache-2.0 */
/* stream_edges CASE: the results of submit and poll apart from success; prints "done", or the line of a fault. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opwest/npu_emul_host.h>

#include <edges.h>

#define ELEMENTS   16
#define LATENCY_US 3000
#define JOBS_MS    ((int)(LATENCY_US / 1000))

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: %s\n", __LINE__, #condition);                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (false)

OPWEST_NPU_EMUL_HOST_DEFINE(npu_a, LATENCY_US);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_b, LATENCY_US);
EDGES_STREAM_DEFINE(stream);
EDGES_WORKSPACE_DEFINE(plain);

static const struct edges_devices devices = {.first = &npu_a, .second = &npu_b};
static int8_t results[2][ELEMENTS];

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);

/* Set by cases: what the operator returns, so many times. */
static int32_t operator_code;
static int operator_count;

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
	if (operator_count > 0) {
		operator_count--;
		return operator_code;
	}
	return opwest_npu_emul_add(dev, 1, a, b, y, ELEMENTS);
}

static void fill(int8_t *x, int frame)
{
	for (int i = 0; i < ELEMENTS; i++) {
		x[i] = (int8_t)(frame * 7 + i);
	}
}

static int submit(int frame)
{
	const struct edges_frame *const next = edges_stream_frame(&stream);

	if (next != NULL) {
		fill(next->input.x, frame);
	}
	return edges_submit(&stream, &(struct edges_inputs){0},
			    &(struct edges_outputs){.y = results[frame % 2]});
}

/* The results of run for frames from the first content of the state on; `first` is the first frame. */
static void check_result(int first, int frame)
{
	int8_t good[ELEMENTS] = {0};

	CHECK(edges_reset(&plain) == 0);
	for (int i = first; i <= frame; i++) {
		fill(plain.input.x, i);
		CHECK(edges_run(&(struct edges_inputs){0}, &(struct edges_outputs){.y = good}, &plain,
				&devices) == 0);
	}
	CHECK(memcmp(good, results[frame % 2], ELEMENTS) == 0);
}

static int poll(void)
{
	return edges_poll(&stream, 5000, NULL);
}

static void check_owned(bool owned)
{
	struct opwest_npu_emul_counts counts[2];

	opwest_npu_emul_count(&npu_a, &counts[0]);
	opwest_npu_emul_count(&npu_b, &counts[1]);
	for (int i = 0; i < 2; i++) {
		CHECK(counts[i].succeeded[OPWEST_NPU_EMUL_OPEN] ==
		      counts[i].calls[OPWEST_NPU_EMUL_CLOSE] + (owned ? 1U : 0U));
	}
}

static void arguments(void)
{
	const struct edges_frame *frame = edges_stream_frame(&stream);

	CHECK(frame != NULL);
	CHECK(edges_submit(NULL, &(struct edges_inputs){0}, &(struct edges_outputs){0}) == -EINVAL);
	CHECK(edges_submit(&stream, NULL, &(struct edges_outputs){0}) == -EINVAL);
	CHECK(stream.workspace.status.hook == OPWEST_HOOK_INPUT);
	CHECK(edges_submit(&stream, &(struct edges_inputs){0}, &(struct edges_outputs){0}) ==
	      -EINVAL);
	CHECK(stream.workspace.status.hook == OPWEST_HOOK_OUTPUT);
	CHECK(stream.workspace.status.argument == 0U);
	CHECK(edges_poll(NULL, 0, NULL) == -EINVAL);
	CHECK(edges_poll(&stream, 0, &frame) == -ENOENT && frame == NULL);
	CHECK(edges_stream_open(&stream, &devices) == -EALREADY);
	CHECK(edges_stream_open(NULL, &devices) == -EINVAL);
	CHECK(edges_stream_close(NULL) == -EINVAL && edges_stream_cancel(NULL) == -EINVAL);
	CHECK(edges_stream_notify(NULL, NULL, NULL) == -EINVAL);
	check_owned(false);
}

static void closed(void)
{
	CHECK(edges_stream_close(&stream) == 0);
	CHECK(edges_stream_frame(&stream) == NULL && edges_stream_frame(NULL) == NULL);
	CHECK(submit(0) == -EPERM);
	CHECK(edges_stream_notify(&stream, NULL, NULL) == -EPERM);
	CHECK(edges_stream_close(&stream) == -EALREADY);
	CHECK(edges_stream_open(&stream, &devices) == 0);
}

static void in_flight(void)
{
	const struct edges_frame *first = edges_stream_frame(&stream);
	const struct edges_frame *ended = NULL;

	CHECK(submit(0) == 0);
	check_owned(true);
	CHECK(edges_stream_frame(&stream) != NULL && edges_stream_frame(&stream) != first);
	CHECK(submit(1) == 0);
	CHECK(edges_stream_frame(&stream) == NULL);
	CHECK(submit(2) == -EAGAIN);
	CHECK(edges_poll(&stream, 0, &ended) == -EAGAIN && ended == NULL);
	CHECK(edges_stream_open(&stream, &devices) == -EBUSY);
	CHECK(edges_stream_close(&stream) == -EBUSY);
	CHECK(edges_stream_notify(&stream, NULL, NULL) == -EBUSY);
	CHECK(edges_poll(&stream, 5000, &ended) == 0 && ended == first);
	CHECK(edges_run(&(struct edges_inputs){0}, &(struct edges_outputs){.y = results[0]}, &plain,
			&devices) == -EDEADLK);
	CHECK(edges_poll(&stream, OPWEST_FOREVER, &ended) == 0 && ended != first);
	check_result(0, 1);
	check_owned(false);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
}

static void *other_thread(void *result)
{
	int *const codes = result;

	codes[0] = edges_poll(&stream, 0, NULL);
	codes[1] = edges_submit(&stream, &(struct edges_inputs){0},
				&(struct edges_outputs){.y = results[0]});
	return NULL;
}

static void threads(void)
{
	pthread_t thread;
	int codes[2];

	CHECK(submit(0) == 0);
	CHECK(pthread_create(&thread, NULL, other_thread, codes) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(codes[0] == -EPERM && codes[1] == -EPERM);
	CHECK(poll() == 0);
	check_result(0, 0);
}

static void expect_busy(void)
{
	static uint8_t saved[EDGES_STATE_SIZE];
	const struct opwest_call_device first =
		edges_call_device(&stream.workspace, EDGES_DEVICE_FIRST_INDEX);
	const struct opwest_status before = stream.workspace.status;

	CHECK(edges_run(NULL, NULL, &stream.workspace, NULL) == -EBUSY);
	CHECK(edges_open(&stream.workspace, &devices) == -EBUSY);
	CHECK(edges_close(&stream.workspace, &devices) == -EBUSY);
	CHECK(edges_reset(&stream.workspace) == -EBUSY);
	CHECK(edges_save(&stream.workspace, saved, sizeof(saved)) == -EBUSY);
	CHECK(edges_restore(&stream.workspace, saved, sizeof(saved)) == -EBUSY);
	CHECK(opwest_own(&first) == -EBUSY && opwest_release(&first) == -EPERM);
	CHECK(memcmp(&before, &stream.workspace.status, sizeof(before)) == 0);
}

static void busy(void)
{
	CHECK(submit(0) == 0);
	expect_busy();
	CHECK(submit(1) == 0);
	expect_busy();
	CHECK(poll() == 0);
	expect_busy();
	CHECK(poll() == 0);
	check_result(0, 1);
	CHECK(opwest_port_take(&stream.workspace.running)); /* a run of another thread */
	expect_busy();
	CHECK(edges_submit(&stream, NULL, NULL) == -EBUSY);
	CHECK(edges_poll(&stream, 0, NULL) == -EBUSY);
	CHECK(edges_stream_notify(&stream, NULL, NULL) == -EBUSY);
	CHECK(edges_stream_open(&stream, &devices) == -EBUSY);
	CHECK(edges_stream_close(&stream) == -EBUSY);
	opwest_port_give(&stream.workspace.running);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(0, 2);
}

static void *compete(void *results_of_thread)
{
	int8_t *const own = results_of_thread;

	for (int i = 0; i < 200; i++) {
		int rc = edges_submit(&stream, &(struct edges_inputs){0},
				      &(struct edges_outputs){.y = own});

		CHECK(rc == 0 || rc == -EBUSY || rc == -EPERM);
		if (rc == 0) {
			CHECK(poll() == 0);
		} else {
			rc = edges_poll(&stream, 0, NULL);
			CHECK(rc == -ENOENT || rc == -EBUSY || rc == -EPERM);
		}
	}
	return NULL;
}

/* Two threads use one stream: each frame belongs to one of them. */
static void race(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		CHECK(pthread_create(&threads[i], NULL, compete, results[i]) == 0);
	}
	for (int i = 0; i < 2; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
	}
	CHECK(edges_reset(&stream.workspace) == 0);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

static int submit_to(int8_t *y)
{
	return edges_submit(&stream, &(struct edges_inputs){0}, &(struct edges_outputs){.y = y});
}

static void expect_refused(int8_t *y)
{
	stream.workspace.status.argument = OPWEST_NO_ARGUMENT;
	CHECK(submit_to(y) == -EINVAL);
	CHECK(stream.workspace.status.hook == OPWEST_HOOK_OUTPUT);
	CHECK(stream.workspace.status.argument == 0U);
}

/* The buffers of a frame do not overlap those of the other one, the pools, or the stream. */
static void overlaps(void)
{
	struct edges_stream other = stream;
	int8_t *const pool = (int8_t *)stream.workspace.sram;
	int8_t *const ends[][2] = {
		{pool, pool + EDGES_POOL_SRAM_STREAM_SIZE},
		{(int8_t *)&stream, (int8_t *)(&stream + 1)},
		{(int8_t *)stream.state, (int8_t *)(stream.state + 1)},
	};

	for (int in_flight = 0; in_flight < 2; in_flight++) {
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
			expect_refused(ends[i][0] - ELEMENTS + 1);
			expect_refused(ends[i][0]);
			expect_refused(ends[i][1] - 1);
		}
		if (in_flight == 0) {
			CHECK(submit(0) == 0);
		}
	}
	expect_refused(results[0]);
	expect_refused(results[0] + ELEMENTS - 1);
	expect_refused(results[0] - ELEMENTS + 1);
	CHECK(submit(1) == 0); /* its buffer follows that of the first frame */
	CHECK(poll() == 0 && poll() == 0);
	check_result(0, 1);
	CHECK(submit_to(results[0]) == 0 && poll() == 0);
	/* A pool for run is large enough up to its end: the second frame is in the stream. */
	memset(&other.workspace.opened, 0, sizeof(other.workspace.opened));
	other.workspace.sram = (uint8_t *)stream.state -
			       (EDGES_POOL_SRAM_STREAM_SIZE - 1U) / EDGES_POOL_SRAM_ALIGN *
				       EDGES_POOL_SRAM_ALIGN;
	CHECK(edges_stream_open(&other, &devices) == -EINVAL);
}

/* Run on the workspace of the stream continues its state, and a frame continues that of run. */
static void runs_between(void)
{
	CHECK(submit(0) == 0 && poll() == 0);
	fill(stream.workspace.input.x, 1);
	CHECK(edges_run(&(struct edges_inputs){0}, &(struct edges_outputs){.y = results[1]},
			&stream.workspace, &devices) == 0);
	check_result(0, 1);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(0, 2);
}

static void job_fails(void)
{
	CHECK(opwest_npu_emul_inject(&npu_a, OPWEST_NPU_EMUL_JOB, 0, -EILSEQ) == 0);
	CHECK(submit(0) == 0 && submit(1) == 0);
	CHECK(poll() == -EILSEQ);
	CHECK(stream.workspace.status.hook == OPWEST_HOOK_SYNC);
	CHECK(stream.workspace.status.step == 0U && stream.workspace.status.device == 0U);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
	check_owned(false);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

/* The result of a frame that has ended is kept when the younger one fails. */
static void younger_fails(void)
{
	CHECK(submit(0) == 0 && submit(1) == 0);
	/* The third job of the second device is that of the second frame. */
	CHECK(opwest_npu_emul_inject(&npu_b, OPWEST_NPU_EMUL_JOB, 1, -EILSEQ) == 0);
	usleep(10 * LATENCY_US);
	CHECK(poll() == 0);
	usleep(10 * LATENCY_US);
	CHECK(poll() == -EILSEQ);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
	check_owned(false);
	check_result(0, 0);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2); /* from the first content of the state on */
}

/* The operator fails when the frame is submitted: poll returns it, and the older frame ends, too. */
static void submit_fails(void)
{
	CHECK(submit(0) == 0);
	operator_code = 5;
	operator_count = 1;
	CHECK(submit(1) == 0);
	CHECK(submit(2) == -EAGAIN && edges_stream_frame(&stream) == NULL);
	check_owned(false);
	CHECK(poll() == -EIO);
	CHECK(stream.workspace.status.code == 5 && stream.workspace.status.step == 0U);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

/* -EAGAIN of an operator whose device has no unfinished work is a failure. */
static void operator_busy(void)
{
	operator_code = -EAGAIN;
	operator_count = 1;
	CHECK(submit(0) == 0);
	CHECK(poll() == -EIO);
	CHECK(stream.workspace.status.code == -EAGAIN);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
	check_owned(false);
}

static void open_fails(void)
{
	CHECK(submit(0) == 0 && poll() == 0);
	CHECK(opwest_npu_emul_inject(&npu_b, OPWEST_NPU_EMUL_OPEN, 0, -EILSEQ) == 0);
	CHECK(submit(1) == -EILSEQ);
	CHECK(stream.workspace.status.hook == OPWEST_HOOK_OPEN);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
	check_owned(false);
	CHECK(submit(1) == 0 && poll() == 0);
	check_result(0, 1); /* no step had begun: the state is that of frame 0 */
}

static void close_fails(void)
{
	CHECK(opwest_npu_emul_inject(&npu_a, OPWEST_NPU_EMUL_CLOSE, 0, -EILSEQ) == 0);
	CHECK(submit(0) == 0 && submit(1) == 0);
	CHECK(poll() == 0);
	CHECK(poll() == -EILSEQ);
	CHECK(stream.workspace.status.hook == OPWEST_HOOK_CLOSE);
	check_owned(false);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

static void hangs(void)
{
	opwest_npu_emul_hang(&npu_b, 0);
	CHECK(submit(0) == 0 && submit(1) == 0);
	CHECK(edges_poll(&stream, 10, NULL) == -EAGAIN);
	CHECK(edges_poll(&stream, OPWEST_FOREVER, NULL) == -ETIMEDOUT);
	CHECK(!stream.workspace.opened);
	CHECK(stream.workspace.status.device == 1U);
	CHECK(edges_poll(&stream, 0, NULL) == -ENOENT && submit(0) == -EPERM);
	CHECK(edges_stream_close(&stream) == -EALREADY);
	CHECK(edges_stream_open(&stream, &devices) == 0);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

/* Each launch has its own time-out: late polls and the other frame do not use it up. */
static void slow(void)
{
	for (int frame = 0; frame < 6; frame += 2) {
		CHECK(submit(frame) == 0 && submit(frame + 1) == 0);
		usleep(200000); /* more than timeout_ms */
		CHECK(poll() == 0);
		usleep(200000);
		CHECK(poll() == 0);
	}
	check_result(0, 5);
}

static void *cancel(void *argument)
{
	usleep(*(const unsigned int *)argument);
	CHECK(edges_stream_cancel(&stream) == 0);
	return NULL;
}

static void cancelled(void)
{
	for (unsigned int delay = 0; delay < 20000U; delay += 700U) {
		pthread_t thread;
		int rc = 0;

		CHECK(submit(0) == 0);
		CHECK(pthread_create(&thread, NULL, cancel, &delay) == 0);
		for (int frame = 1; rc == 0; frame++) {
			CHECK(submit(frame) == 0 || edges_stream_frame(&stream) == NULL);
			rc = edges_poll(&stream, OPWEST_FOREVER, NULL);
		}
		CHECK(rc == -ECANCELED);
		CHECK(stream.workspace.status.hook == OPWEST_HOOK_CANCEL);
		CHECK(edges_poll(&stream, 0, NULL) == -ENOENT);
		CHECK(pthread_join(thread, NULL) == 0);
		check_owned(false);
		CHECK(stream.workspace.opened);
		CHECK(submit(2) == 0 && poll() == 0);
		check_result(2, 2);
	}
	/* Without a frame in flight there is no effect. */
	CHECK(edges_stream_cancel(&stream) == 0);
	CHECK(edges_reset(&stream.workspace) == 0);
	CHECK(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

/* A frame that has ended before the cancellation keeps its result. */
static void cancelled_late(void)
{
	CHECK(submit(0) == 0);
	usleep(10 * LATENCY_US);
	CHECK(edges_poll(&stream, 0, NULL) == -EAGAIN);
	usleep(10 * LATENCY_US);
	CHECK(submit(1) == 0); /* ends frame 0 */
	CHECK(edges_stream_cancel(&stream) == 0);
	CHECK(poll() == 0);
	CHECK(poll() == -ECANCELED);
	check_owned(false);
	check_result(0, 0);
}

static int called;

static void count_call(void *user)
{
	CHECK(user == &called);
	(void)__atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
}

/* Without a wait in poll: the callback is called at the end of each job. */
static void notified(void)
{
	int seen = 0;

	CHECK(edges_stream_notify(&stream, count_call, &called) == 0);
	CHECK(submit(0) == 0 && submit(1) == 0);
	for (int frame = 0; frame < 2;) {
		const int rc = edges_poll(&stream, 0, NULL);

		CHECK(rc == 0 || rc == -EAGAIN);
		frame += rc == 0;
		while (rc == -EAGAIN && __atomic_load_n(&called, __ATOMIC_SEQ_CST) == seen) {
			usleep(100);
		}
		seen = __atomic_load_n(&called, __ATOMIC_SEQ_CST);
	}
	check_result(0, 1);
	CHECK(seen == 4);
	CHECK(edges_stream_notify(&stream, NULL, NULL) == 0);
	CHECK(submit(2) == 0 && poll() == 0);
	CHECK(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 4);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"arguments", arguments},
	{"closed", closed},
	{"in_flight", in_flight},
	{"threads", threads},
	{"busy", busy},
	{"race", race},
	{"overlaps", overlaps},
	{"runs_between", runs_between},
	{"job_fails", job_fails},
	{"younger_fails", younger_fails},
	{"submit_fails", submit_fails},
	{"operator_busy", operator_busy},
	{"open_fails", open_fails},
	{"close_fails", close_fails},
	{"hangs", hangs},
	{"slow", slow},
	{"cancelled", cancelled},
	{"cancelled_late", cancelled_late},
	{"notified", notified},
};

int main(int argc, char **argv)
{
	alarm(100);
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			CHECK(edges_stream_frame(&stream) == NULL);
			CHECK(edges_open(&plain, &devices) == 0);
			CHECK(edges_stream_open(&stream, &devices) == 0);
			cases[i].run();
			CHECK(edges_stream_close(&stream) == 0);
			CHECK(edges_close(&plain, &devices) == 0);
			printf("done\n");
			return 0;
		}
	}
	return 2;
}
