/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs two streams in two workspaces, frame after frame, with failures, resets, and a restored state in between, and
 * compares every output with numpy's (two_streams.h, written by tests/streams.py).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <streams.h>
#ifdef __ZEPHYR__
#include <streams_devicetree.h>
#endif

#include "two_streams.h"

STREAMS_WORKSPACE_DEFINE(first);
STREAMS_WORKSPACE_DEFINE(second);
static const struct streams_devices devices = STREAMS_DEVICES_DT_INIT;

static int wrong;
static uint8_t saved[STREAMS_STATE_SIZE];

static int run(struct streams_workspace *workspace, const float *x, int32_t fail, float *y)
{
	const struct streams_inputs inputs = {.x = x, .fail = &fail};
	const struct streams_outputs outputs = {.y = y};

	return streams_run(&inputs, &outputs, workspace, &devices);
}

static void check(const char *what, int frame, int found, int expected)
{
	if (found != expected && wrong++ < 10) {
		printf("frame %d: %s is %d, expected %d\n", frame, what, found, expected);
	}
}

/* Run one frame of a stream as its event demands. */
static void step(const char *name, struct streams_workspace *workspace, const struct stream *stream, int frame)
{
	const int event = stream->events[frame];
	float y[STREAMS_OUTPUT_Y_ELEMENTS];

	if (event == EVENT_RESET) {
		check("reset", frame, streams_reset(workspace), 0);
	} else if (event == EVENT_OPEN_AGAIN) {
		check("close", frame, streams_close(workspace, &devices), 0);
		check("open", frame, streams_open(workspace, &devices), 0);
	} else if (event == EVENT_RESTORE) {
		check("save", frame, streams_save(workspace, saved, sizeof(saved)), 0);
		check("run in between", frame, run(workspace, stream->x[frame], 0, y), 0);
		check("restore", frame, streams_restore(workspace, saved, sizeof(saved)), 0);
	} else if (event > 0) {
		/* The operator fails; the state is the first one again. */
		check("failed run", frame, run(workspace, stream->x[frame], event, y), -EIO);
		check("failed step", frame, workspace->status.step, event - 1);
	}
	check("run", frame, run(workspace, stream->x[frame], 0, y), 0);
	if (memcmp(y, stream->y[frame], sizeof(y)) != 0 && wrong++ < 10) {
		for (int i = 0; i < 5; i++) {
			printf("%s, frame %d: y[%d] is %.9g, expected %.9g\n", name, frame, i, (double)y[i],
			       (double)stream->y[frame][i]);
		}
	}
}

int main(void)
{
	/* The content of the memory before open is of no importance. */
	memset(first.sram, 0xa5, STREAMS_POOL_SRAM_SIZE);
	memset(second.history, 0x5a, STREAMS_POOL_HISTORY_SIZE);
	check("open", 0, streams_open(&first, &devices), 0);
	check("open", 0, streams_open(&second, &devices), 0);
	for (int frame = 0; frame < FRAMES; frame++) {
		step("first", &first, &stream_first, frame);
		step("second", &second, &stream_second, frame);
	}
	check("close", FRAMES, streams_close(&first, &devices), 0);
	check("close", FRAMES, streams_close(&second, &devices), 0);
	printf("two streams of %d frames: %d wrong\n", FRAMES, wrong);
	return wrong == 0 ? 0 : 1;
}
