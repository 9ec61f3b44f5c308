/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Classifies held-out digits one after the other, then as a stream, and compares the results and
 * the times. On Zephyr the thread waits with k_poll(), so it could wait for other events, too.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __ZEPHYR__
#include <zephyr/kernel.h>
#else
#include <time.h>
#endif

#include <npu_pipeline.h>
#ifdef __ZEPHYR__
#include <npu_pipeline_devicetree.h>
#endif

#include "held_out.h"

NPU_PIPELINE_STREAM_DEFINE(stream);
static const struct npu_pipeline_devices devices = NPU_PIPELINE_DEVICES_DT_INIT;
static int32_t labels_of_run[HELD_OUT_IMAGES];
static int32_t labels_of_stream[HELD_OUT_IMAGES];

#ifdef __ZEPHYR__
static struct k_poll_signal ended = K_POLL_SIGNAL_INITIALIZER(ended);

static uint64_t microseconds(void)
{
	return k_ticks_to_us_near64(k_uptime_ticks());
}

/** Wait for the oldest frame. Each end of a job raises the signal. */
static int wait_for_frame(void)
{
	struct k_poll_event event =
		K_POLL_EVENT_INITIALIZER(K_POLL_TYPE_SIGNAL, K_POLL_MODE_NOTIFY_ONLY, &ended);
	int rc;

	for (;;) {
		k_poll_signal_reset(&ended);
		event.state = K_POLL_STATE_NOT_READY;
		rc = npu_pipeline_poll(&stream, 0, NULL);
		if (rc != -EAGAIN) {
			return rc;
		}
		/* With a limit, because a job that hangs raises no signal: poll finds its time-out.
		 */
		(void)k_poll(&event, 1, K_MSEC(100));
	}
}

static int start_notifications(void)
{
	return npu_pipeline_stream_notify(&stream, opwest_stream_raise, &ended);
}
#else
static uint64_t microseconds(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000U + (uint64_t)(time.tv_nsec / 1000);
}

static int wait_for_frame(void)
{
	return npu_pipeline_poll(&stream, OPWEST_FOREVER, NULL);
}

static int start_notifications(void)
{
	return 0;
}
#endif

static void write_image(int8_t *pixels, int32_t image)
{
	for (int32_t i = 0; i < HELD_OUT_PIXELS; i++) {
		pixels[i] = (int8_t)(held_out[image].pixels[i] - 'a');
	}
}

static int run_all(void)
{
	struct npu_pipeline_workspace *const workspace = &stream.workspace;
	int rc = 0;

	for (int32_t i = 0; i < HELD_OUT_IMAGES && rc == 0; i++) {
		write_image(workspace->input.image, i);
		rc = npu_pipeline_run(&(struct npu_pipeline_inputs){0},
				      &(struct npu_pipeline_outputs){&labels_of_run[i]}, workspace,
				      &devices);
	}
	return rc;
}

static int stream_all(void)
{
	const struct npu_pipeline_frame *frame;
	int32_t submitted = 0;
	int rc = 0;

	for (int32_t ended_frames = 0; ended_frames < HELD_OUT_IMAGES && rc == 0; ended_frames++) {
		/* Two frames in flight, until the last image. */
		while (submitted < HELD_OUT_IMAGES && rc == 0) {
			frame = npu_pipeline_stream_frame(&stream);
			if (frame == NULL) {
				break;
			}
			write_image(frame->input.image, submitted);
			rc = npu_pipeline_submit(
				&stream, &(struct npu_pipeline_inputs){0},
				&(struct npu_pipeline_outputs){&labels_of_stream[submitted]});
			submitted++;
		}
		if (rc == 0) {
			rc = wait_for_frame();
		}
	}
	return rc;
}

static void report(uint64_t us_of_run, uint64_t us_of_stream)
{
	int32_t equal = 0;
	int32_t correct = 0;

	printf("npu_pipeline:");
	for (int32_t i = 0; i < HELD_OUT_IMAGES; i++) {
		printf(" %d", (int)labels_of_stream[i]);
		equal += labels_of_stream[i] == labels_of_run[i];
		correct += labels_of_stream[i] == held_out[i].label;
	}
	printf("\nstream: %d of %d equal run, %d correct\n", (int)equal, (int)HELD_OUT_IMAGES,
	       (int)correct);
	printf("frames per second: %d.%d by run, %d.%d by submit and poll\n",
	       (int)(HELD_OUT_IMAGES * UINT64_C(1000000) / us_of_run),
	       (int)(HELD_OUT_IMAGES * UINT64_C(10000000) / us_of_run % 10U),
	       (int)(HELD_OUT_IMAGES * UINT64_C(1000000) / us_of_stream),
	       (int)(HELD_OUT_IMAGES * UINT64_C(10000000) / us_of_stream % 10U));
}

int main(void)
{
	uint64_t begin;
	uint64_t us_of_run;
	int closed;
	int rc = npu_pipeline_stream_open(&stream, &devices);

	if (rc != 0) {
		printf("error: npu_pipeline_stream_open: %d\n", rc);
		return 1;
	}
	begin = microseconds();
	rc = run_all();
	us_of_run = microseconds() - begin;
	if (rc == 0) {
		rc = start_notifications();
	}
	if (rc == 0) {
		begin = microseconds();
		rc = stream_all();
	}
	if (rc == 0) {
		report(us_of_run, microseconds() - begin);
	} else {
		printf("error: %d, step %d\n", rc, (int)stream.workspace.status.step);
	}
	closed = npu_pipeline_stream_close(&stream);
	if (closed != 0) {
		printf("error: npu_pipeline_stream_close: %d\n", closed);
	}
	if (rc != 0 || closed != 0) {
		return 1;
	}
	printf("done\n");
	return 0;
}
