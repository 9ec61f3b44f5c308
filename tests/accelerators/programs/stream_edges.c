/* SPDX-License-Identifier: Apache-2.0 */
/* The results of submit and poll apart from success. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <opwest/npu_emul_host.h>

#include <edges.h>

static void open_both(void);
static void close_both(void);

#define BEFORE_CASE open_both
#define AFTER_CASE  close_both
#include "../../compile/programs/cases.h"

#define ELEMENTS   16
#define LATENCY_US 3000

OPWEST_NPU_EMUL_HOST_DEFINE(npu_a, LATENCY_US);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_b, LATENCY_US);
EDGES_STREAM_DEFINE(stream);
EDGES_WORKSPACE_DEFINE(plain);

static const struct edges_devices devices = {.first = &npu_a, .second = &npu_b};
static const struct edges_inputs inputs;
static int8_t results[2][ELEMENTS];

static void fill(int8_t *x, int frame)
{
	for (int i = 0; i < ELEMENTS; i++) {
		x[i] = (int8_t)(frame * 7 + i);
	}
}

static int submit_to(int8_t *y)
{
	return edges_submit(&stream, &inputs, &(struct edges_outputs){y});
}

static int submit(int frame)
{
	const struct edges_frame *const next = edges_stream_frame(&stream);

	if (next != NULL) {
		fill(next->input.x, frame);
	}
	return submit_to(results[frame % 2]);
}

static int run(struct edges_workspace *workspace, int frame, int8_t *y)
{
	fill(workspace->input.x, frame);
	return edges_run(&inputs, &(struct edges_outputs){y}, workspace, &devices);
}

/* The results of run for frames; the state has its first content before the frame `first`. */
static void check_result(int first, int frame)
{
	int8_t good[ELEMENTS] = {0};

	EXPECT(edges_reset(&plain) == 0);
	for (int i = first; i <= frame; i++) {
		EXPECT(run(&plain, i, good) == 0);
	}
	EXPECT(memcmp(good, results[frame % 2], ELEMENTS) == 0);
}

static int poll(void)
{
	return edges_poll(&stream, 5000, NULL);
}

static int poll_now(void)
{
	return edges_poll(&stream, 0, NULL);
}

static void expect_frame(int first, int frame)
{
	EXPECT(submit(frame) == 0 && poll() == 0);
	check_result(first, frame);
}

static void check_owned(bool owned)
{
	struct opwest_npu_emul_counts counts[2];

	opwest_npu_emul_count(&npu_a, &counts[0]);
	opwest_npu_emul_count(&npu_b, &counts[1]);
	for (int i = 0; i < 2; i++) {
		EXPECT(counts[i].succeeded[OPWEST_NPU_EMUL_OPEN] ==
		      counts[i].calls[OPWEST_NPU_EMUL_CLOSE] + (owned ? 1U : 0U));
	}
}

static void case_arguments(void)
{
	const struct edges_frame *frame = edges_stream_frame(&stream);

	EXPECT(frame != NULL);
	EXPECT(edges_submit(NULL, &inputs, &(struct edges_outputs){0}) == -EINVAL);
	EXPECT(edges_poll(NULL, 0, NULL) == -EINVAL && edges_stream_close(NULL) == -EINVAL);
	EXPECT(edges_stream_open(NULL, &devices) == -EINVAL && edges_stream_cancel(NULL) == -EINVAL);
	EXPECT(edges_stream_notify(NULL, NULL, NULL) == -EINVAL);
	EXPECT(edges_submit(&stream, NULL, &(struct edges_outputs){0}) == -EINVAL);
	EXPECT(stream.workspace.status.hook == OPWEST_HOOK_INPUT);
	EXPECT(submit_to(NULL) == -EINVAL);
	EXPECT(stream.workspace.status.hook == OPWEST_HOOK_OUTPUT);
	EXPECT(stream.workspace.status.argument == 0U);
	EXPECT(edges_poll(&stream, 0, &frame) == -ENOENT && frame == NULL);
	EXPECT(edges_stream_open(&stream, &devices) == -EALREADY);
	check_owned(false);
}

static void case_closed(void)
{
	EXPECT(edges_stream_close(&stream) == 0);
	EXPECT(edges_stream_frame(&stream) == NULL && edges_stream_frame(NULL) == NULL);
	EXPECT(submit(0) == -EPERM);
	EXPECT(edges_stream_notify(&stream, NULL, NULL) == -EPERM);
	EXPECT(edges_stream_close(&stream) == -EALREADY);
	EXPECT(edges_stream_open(&stream, &devices) == 0);
}

static void case_in_flight(void)
{
	const struct edges_frame *first = edges_stream_frame(&stream);
	const struct edges_frame *ended = NULL;

	EXPECT(submit(0) == 0);
	check_owned(true);
	EXPECT(edges_stream_frame(&stream) != NULL && edges_stream_frame(&stream) != first);
	EXPECT(submit(1) == 0);
	EXPECT(edges_stream_frame(&stream) == NULL);
	EXPECT(submit(2) == -EAGAIN);
	EXPECT(edges_poll(&stream, 0, &ended) == -EAGAIN && ended == NULL);
	EXPECT(edges_stream_open(&stream, &devices) == -EBUSY);
	EXPECT(edges_stream_close(&stream) == -EBUSY);
	EXPECT(edges_stream_notify(&stream, NULL, NULL) == -EBUSY);
	EXPECT(edges_poll(&stream, 5000, &ended) == 0 && ended == first);
	EXPECT(run(&plain, 0, results[0]) == -EDEADLK);
	EXPECT(edges_poll(&stream, OPWEST_FOREVER, &ended) == 0 && ended != first);
	check_result(0, 1);
	check_owned(false);
	EXPECT(poll_now() == -ENOENT);
}

static void *other_thread(void *unused)
{
	EXPECT(poll_now() == -EPERM && submit_to(results[0]) == -EPERM);
	return unused;
}

static void case_threads(void)
{
	pthread_t thread;

	EXPECT(submit(0) == 0);
	EXPECT(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT(poll() == 0);
	check_result(0, 0);
}

/* A run of another thread. ownership.c has calls of the workspace while a frame is in flight. */
static void case_busy(void)
{
	EXPECT(opwest_port_take(&stream.workspace.running));
	EXPECT(edges_submit(&stream, NULL, NULL) == -EBUSY && poll_now() == -EBUSY);
	EXPECT(edges_stream_notify(&stream, NULL, NULL) == -EBUSY);
	EXPECT(edges_stream_open(&stream, &devices) == -EBUSY);
	EXPECT(edges_stream_close(&stream) == -EBUSY);
	opwest_port_give(&stream.workspace.running);
	expect_frame(0, 0);
}

static void *compete(void *results_of_thread)
{
	for (int i = 0; i < 200; i++) {
		int rc = submit_to(results_of_thread);

		EXPECT(rc == 0 || rc == -EBUSY || rc == -EPERM);
		if (rc == 0) {
			EXPECT(poll() == 0);
		} else {
			rc = poll_now();
			EXPECT(rc == -ENOENT || rc == -EBUSY || rc == -EPERM);
		}
	}
	return NULL;
}

/* Two threads use one stream: each frame belongs to one of them. */
static void case_race(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		EXPECT(pthread_create(&threads[i], NULL, compete, results[i]) == 0);
	}
	for (int i = 0; i < 2; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
	}
	EXPECT(edges_reset(&stream.workspace) == 0);
	expect_frame(2, 2);
}

static void expect_refused(int8_t *y)
{
	stream.workspace.status.argument = OPWEST_NO_ARGUMENT;
	EXPECT(submit_to(y) == -EINVAL);
	EXPECT(stream.workspace.status.hook == OPWEST_HOOK_OUTPUT);
	EXPECT(stream.workspace.status.argument == 0U);
}

/* The buffers of a frame do not overlap those of the other one, the pools, or the stream. */
static void case_overlaps(void)
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
			EXPECT(submit(0) == 0);
		}
	}
	expect_refused(results[0]);
	expect_refused(results[0] + ELEMENTS - 1);
	expect_refused(results[0] - ELEMENTS + 1);
	EXPECT(submit(1) == 0); /* its buffer follows that of the first frame */
	EXPECT(poll() == 0 && poll() == 0);
	check_result(0, 1);
	EXPECT(submit_to(results[0]) == 0 && poll() == 0);
	/* A pool for run is large enough up to its end: the second frame is in the stream. */
	memset(&other.workspace.opened, 0, sizeof(other.workspace.opened));
	other.workspace.sram = (uint8_t *)stream.state -
			       (EDGES_POOL_SRAM_STREAM_SIZE - 1U) / EDGES_POOL_SRAM_ALIGN *
				       EDGES_POOL_SRAM_ALIGN;
	EXPECT(edges_stream_open(&other, &devices) == -EINVAL);
}

/* Run on the workspace of the stream continues its state, and a frame continues that of run. */
static void case_runs_between(void)
{
	expect_frame(0, 0);
	EXPECT(run(&stream.workspace, 1, results[1]) == 0);
	check_result(0, 1);
	expect_frame(0, 2);
}

static void case_hangs(void)
{
	opwest_npu_emul_hang(&npu_b, 0);
	EXPECT(submit(0) == 0 && submit(1) == 0);
	EXPECT(edges_poll(&stream, 10, NULL) == -EAGAIN);
	EXPECT(edges_poll(&stream, OPWEST_FOREVER, NULL) == -ETIMEDOUT);
	EXPECT(!stream.workspace.opened);
	EXPECT(stream.workspace.status.device == 1U);
	EXPECT(poll_now() == -ENOENT && submit(0) == -EPERM);
	EXPECT(edges_stream_close(&stream) == -EALREADY);
	EXPECT(edges_stream_open(&stream, &devices) == 0);
	expect_frame(2, 2);
}

/* Each launch has its own time-out: late polls and the other frame do not use it up. */
static void case_slow(void)
{
	for (int frame = 0; frame < 6; frame += 2) {
		EXPECT(submit(frame) == 0 && submit(frame + 1) == 0);
		usleep(200000); /* more than timeout_ms */
		EXPECT(poll() == 0);
		usleep(200000);
		EXPECT(poll() == 0);
	}
	check_result(0, 5);
}

static void *cancel(void *argument)
{
	usleep(*(const unsigned int *)argument);
	EXPECT(edges_stream_cancel(&stream) == 0);
	return NULL;
}

static void case_cancelled(void)
{
	for (unsigned int delay = 0; delay < 20000U; delay += 700U) {
		pthread_t thread;
		int rc = 0;

		EXPECT(submit(0) == 0);
		EXPECT(pthread_create(&thread, NULL, cancel, &delay) == 0);
		for (int frame = 1; rc == 0; frame++) {
			EXPECT(submit(frame) == 0 || edges_stream_frame(&stream) == NULL);
			rc = edges_poll(&stream, OPWEST_FOREVER, NULL);
		}
		EXPECT(rc == -ECANCELED);
		EXPECT(stream.workspace.status.hook == OPWEST_HOOK_CANCEL);
		EXPECT(poll_now() == -ENOENT);
		EXPECT(pthread_join(thread, NULL) == 0);
		check_owned(false);
		EXPECT(stream.workspace.opened);
		expect_frame(2, 2);
	}
	/* Without a frame in flight there is no effect. */
	EXPECT(edges_stream_cancel(&stream) == 0);
	EXPECT(edges_reset(&stream.workspace) == 0);
	expect_frame(2, 2);
}

static atomic_int called;

static void count_call(void *user)
{
	EXPECT(user == &called);
	called++;
}

/* Without a wait in poll: the callback is called at the end of each job. */
static void case_notified(void)
{
	int seen = 0;

	EXPECT(edges_stream_notify(&stream, count_call, &called) == 0);
	EXPECT(submit(0) == 0 && submit(1) == 0);
	for (int frame = 0; frame < 2;) {
		const int rc = poll_now();

		EXPECT(rc == 0 || rc == -EAGAIN);
		frame += rc == 0;
		while (rc == -EAGAIN && called == seen) {
			usleep(100);
		}
		seen = called;
	}
	check_result(0, 1);
	EXPECT(seen == 4);
	EXPECT(edges_stream_notify(&stream, NULL, NULL) == 0);
	EXPECT(submit(2) == 0 && poll() == 0);
	EXPECT(called == 4);
}

static void open_both(void)
{
	alarm(100);
	EXPECT(edges_stream_frame(&stream) == NULL);
	EXPECT(edges_open(&plain, &devices) == 0);
	EXPECT(edges_stream_open(&stream, &devices) == 0);
}

static void close_both(void)
{
	EXPECT(edges_stream_close(&stream) == 0);
	EXPECT(edges_close(&plain, &devices) == 0);
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv,
			 CASE(arguments), CASE(closed), CASE(in_flight), CASE(threads), CASE(busy),
			 CASE(race), CASE(overlaps), CASE(runs_between), CASE(hangs), CASE(slow), CASE(cancelled),
			 CASE(notified));
}
