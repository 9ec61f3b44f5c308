/* SPDX-License-Identifier: Apache-2.0 */
/* The results of submit and poll apart from success. */
#include <errno.h>
#include <pthread.h>
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
#define JOBS_MS    ((int)(LATENCY_US / 1000))

OPWEST_NPU_EMUL_HOST_DEFINE(npu_a, LATENCY_US);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_b, LATENCY_US);
EDGES_STREAM_DEFINE(stream);
EDGES_WORKSPACE_DEFINE(plain);

static const struct edges_devices devices = {.first = &npu_a, .second = &npu_b};
static int8_t results[2][ELEMENTS];

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev);

int32_t adder_launch(const int8_t *a, const int8_t *b, int8_t *y, const struct device *dev)
{
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

	EXPECT(edges_reset(&plain) == 0);
	for (int i = first; i <= frame; i++) {
		fill(plain.input.x, i);
		EXPECT(edges_run(&(struct edges_inputs){0}, &(struct edges_outputs){.y = good}, &plain,
				&devices) == 0);
	}
	EXPECT(memcmp(good, results[frame % 2], ELEMENTS) == 0);
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
		EXPECT(counts[i].succeeded[OPWEST_NPU_EMUL_OPEN] ==
		      counts[i].calls[OPWEST_NPU_EMUL_CLOSE] + (owned ? 1U : 0U));
	}
}

static void case_arguments(void)
{
	const struct edges_frame *frame = edges_stream_frame(&stream);

	EXPECT(frame != NULL);
	EXPECT(edges_submit(NULL, &(struct edges_inputs){0}, &(struct edges_outputs){0}) == -EINVAL);
	EXPECT(edges_submit(&stream, NULL, &(struct edges_outputs){0}) == -EINVAL);
	EXPECT(stream.workspace.status.hook == OPWEST_HOOK_INPUT);
	EXPECT(edges_submit(&stream, &(struct edges_inputs){0}, &(struct edges_outputs){0}) ==
	      -EINVAL);
	EXPECT(stream.workspace.status.hook == OPWEST_HOOK_OUTPUT);
	EXPECT(stream.workspace.status.argument == 0U);
	EXPECT(edges_poll(NULL, 0, NULL) == -EINVAL);
	EXPECT(edges_poll(&stream, 0, &frame) == -ENOENT && frame == NULL);
	EXPECT(edges_stream_open(&stream, &devices) == -EALREADY);
	EXPECT(edges_stream_open(NULL, &devices) == -EINVAL);
	EXPECT(edges_stream_close(NULL) == -EINVAL && edges_stream_cancel(NULL) == -EINVAL);
	EXPECT(edges_stream_notify(NULL, NULL, NULL) == -EINVAL);
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
	EXPECT(edges_run(&(struct edges_inputs){0}, &(struct edges_outputs){.y = results[0]}, &plain,
			&devices) == -EDEADLK);
	EXPECT(edges_poll(&stream, OPWEST_FOREVER, &ended) == 0 && ended != first);
	check_result(0, 1);
	check_owned(false);
	EXPECT(edges_poll(&stream, 0, NULL) == -ENOENT);
}

static void *other_thread(void *result)
{
	int *const codes = result;

	codes[0] = edges_poll(&stream, 0, NULL);
	codes[1] = edges_submit(&stream, &(struct edges_inputs){0},
				&(struct edges_outputs){.y = results[0]});
	return NULL;
}

static void case_threads(void)
{
	pthread_t thread;
	int codes[2];

	EXPECT(submit(0) == 0);
	EXPECT(pthread_create(&thread, NULL, other_thread, codes) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT(codes[0] == -EPERM && codes[1] == -EPERM);
	EXPECT(poll() == 0);
	check_result(0, 0);
}

static void expect_busy(void)
{
	static uint8_t saved[EDGES_STATE_SIZE];
	const struct opwest_call_device first =
		edges_call_device(&stream.workspace, EDGES_DEVICE_FIRST_INDEX);
	const struct opwest_status before = stream.workspace.status;

	EXPECT(edges_run(NULL, NULL, &stream.workspace, NULL) == -EBUSY);
	EXPECT(edges_open(&stream.workspace, &devices) == -EBUSY);
	EXPECT(edges_close(&stream.workspace, &devices) == -EBUSY);
	EXPECT(edges_reset(&stream.workspace) == -EBUSY);
	EXPECT(edges_save(&stream.workspace, saved, sizeof(saved)) == -EBUSY);
	EXPECT(edges_restore(&stream.workspace, saved, sizeof(saved)) == -EBUSY);
	EXPECT(opwest_own(&first) == -EBUSY && opwest_release(&first) == -EPERM);
	EXPECT(memcmp(&before, &stream.workspace.status, sizeof(before)) == 0);
}

static void case_busy(void)
{
	EXPECT(submit(0) == 0);
	expect_busy();
	EXPECT(submit(1) == 0);
	expect_busy();
	EXPECT(poll() == 0);
	expect_busy();
	EXPECT(poll() == 0);
	check_result(0, 1);
	EXPECT(opwest_port_take(&stream.workspace.running)); /* a run of another thread */
	expect_busy();
	EXPECT(edges_submit(&stream, NULL, NULL) == -EBUSY);
	EXPECT(edges_poll(&stream, 0, NULL) == -EBUSY);
	EXPECT(edges_stream_notify(&stream, NULL, NULL) == -EBUSY);
	EXPECT(edges_stream_open(&stream, &devices) == -EBUSY);
	EXPECT(edges_stream_close(&stream) == -EBUSY);
	opwest_port_give(&stream.workspace.running);
	EXPECT(submit(2) == 0 && poll() == 0);
	check_result(0, 2);
}

static void *compete(void *results_of_thread)
{
	int8_t *const own = results_of_thread;

	for (int i = 0; i < 200; i++) {
		int rc = edges_submit(&stream, &(struct edges_inputs){0},
				      &(struct edges_outputs){.y = own});

		EXPECT(rc == 0 || rc == -EBUSY || rc == -EPERM);
		if (rc == 0) {
			EXPECT(poll() == 0);
		} else {
			rc = edges_poll(&stream, 0, NULL);
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
	EXPECT(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

static int submit_to(int8_t *y)
{
	return edges_submit(&stream, &(struct edges_inputs){0}, &(struct edges_outputs){.y = y});
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
	EXPECT(submit(0) == 0 && poll() == 0);
	fill(stream.workspace.input.x, 1);
	EXPECT(edges_run(&(struct edges_inputs){0}, &(struct edges_outputs){.y = results[1]},
			&stream.workspace, &devices) == 0);
	check_result(0, 1);
	EXPECT(submit(2) == 0 && poll() == 0);
	check_result(0, 2);
}

static void case_hangs(void)
{
	opwest_npu_emul_hang(&npu_b, 0);
	EXPECT(submit(0) == 0 && submit(1) == 0);
	EXPECT(edges_poll(&stream, 10, NULL) == -EAGAIN);
	EXPECT(edges_poll(&stream, OPWEST_FOREVER, NULL) == -ETIMEDOUT);
	EXPECT(!stream.workspace.opened);
	EXPECT(stream.workspace.status.device == 1U);
	EXPECT(edges_poll(&stream, 0, NULL) == -ENOENT && submit(0) == -EPERM);
	EXPECT(edges_stream_close(&stream) == -EALREADY);
	EXPECT(edges_stream_open(&stream, &devices) == 0);
	EXPECT(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
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
		EXPECT(edges_poll(&stream, 0, NULL) == -ENOENT);
		EXPECT(pthread_join(thread, NULL) == 0);
		check_owned(false);
		EXPECT(stream.workspace.opened);
		EXPECT(submit(2) == 0 && poll() == 0);
		check_result(2, 2);
	}
	/* Without a frame in flight there is no effect. */
	EXPECT(edges_stream_cancel(&stream) == 0);
	EXPECT(edges_reset(&stream.workspace) == 0);
	EXPECT(submit(2) == 0 && poll() == 0);
	check_result(2, 2);
}

static int called;

static void count_call(void *user)
{
	EXPECT(user == &called);
	(void)__atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
}

/* Without a wait in poll: the callback is called at the end of each job. */
static void case_notified(void)
{
	int seen = 0;

	EXPECT(edges_stream_notify(&stream, count_call, &called) == 0);
	EXPECT(submit(0) == 0 && submit(1) == 0);
	for (int frame = 0; frame < 2;) {
		const int rc = edges_poll(&stream, 0, NULL);

		EXPECT(rc == 0 || rc == -EAGAIN);
		frame += rc == 0;
		while (rc == -EAGAIN && __atomic_load_n(&called, __ATOMIC_SEQ_CST) == seen) {
			usleep(100);
		}
		seen = __atomic_load_n(&called, __ATOMIC_SEQ_CST);
	}
	check_result(0, 1);
	EXPECT(seen == 4);
	EXPECT(edges_stream_notify(&stream, NULL, NULL) == 0);
	EXPECT(submit(2) == 0 && poll() == 0);
	EXPECT(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 4);
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
