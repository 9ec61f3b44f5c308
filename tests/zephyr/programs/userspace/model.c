/* SPDX-License-Identifier: Apache-2.0 */
/* The model `streams` in a user thread, frame by frame equal to runs in supervisor mode. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <streams.h>
#include <streams_devicetree.h>

#include "userspace.h"

#define FRAMES 32

STREAMS_WORKSPACE_DEFINE_IN(of_user, user_partition);
STREAMS_WORKSPACE_DEFINE(of_kernel);
static const struct streams_devices devices = STREAMS_DEVICES_DT_INIT;

static K_APP_BMEM(user_partition) float found[2][FRAMES][STREAMS_OUTPUT_Y_ELEMENTS];
static K_APP_BMEM(user_partition) uint8_t saved[STREAMS_STATE_SIZE];
static float expected[FRAMES][STREAMS_OUTPUT_Y_ELEMENTS];

static int frame(struct streams_workspace *workspace, int index, int32_t fails, float *y)
{
	const float x[] = {index % 7 - 3.0f, index % 5 * 0.5f, 1.0f - index % 3, index * 0.125f};

	return streams_run(&(struct streams_inputs){.x = x, .fail = &fails},
			   &(struct streams_outputs){.y = y}, workspace, &devices);
}

/* Half of the frames, the rest twice: once after a save, and again after a restore. */
static int all_frames(struct streams_workspace *workspace, float y[][STREAMS_OUTPUT_Y_ELEMENTS])
{
	int rc = 0;

	for (int i = 0; i < FRAMES && rc == 0; i++) {
		rc = frame(workspace, i, 0, y[i]);
	}
	return rc;
}

static void as_user(intptr_t argument)
{
	float y[STREAMS_OUTPUT_Y_ELEMENTS];
	int rc = 0;

	check_equal("open", streams_open(&of_user, &devices), 0);
	check_equal("run", all_frames(&of_user, found[0]), 0);
	check_equal("reset", streams_reset(&of_user), 0);
	for (int i = 0; i < FRAMES; i++) {
		if (i == FRAMES / 2) {
			check_equal("save", streams_save(&of_user, saved, sizeof(saved)), 0);
			(void)frame(&of_user, 99, 0, y);
			check_equal("restore", streams_restore(&of_user, saved, sizeof(saved)), 0);
		}
		rc = frame(&of_user, i, 0, found[1][i]);
	}
	check("run after restore", rc == 0, rc);
	rc = frame(&of_user, 0, 2, y);
	check("failing operator", rc == -EIO && of_user.status.step == 1U, rc);
	check_equal("close", streams_close(&of_user, &devices), 0);
}

static void by_name(intptr_t argument)
{
	static const float bands[2][4] = {{1.0f, 1.0f, 1.0f, 1.0f}, {2.0f, 2.0f, 2.0f, 2.0f}};
	const int32_t fail = 0;
	float features[2] = {0.0f, 0.0f};
	const struct opwest_value args[] = {
		opwest_in(OPWEST_FLOAT32, bands, sizeof(bands)),
		opwest_in(OPWEST_INT32, &fail, sizeof(fail)),
		opwest_out(OPWEST_FLOAT32, features, sizeof(features)),
	};
	const int rc = opwest_call(opwest_find(&streams_registry, "energies"), args, 3, NULL);

	check("call by name", rc == 0 && features[0] > 0.0f && features[1] > features[0], rc);
}

/* The memory of this workspace is that of the kernel. */
static void outside(intptr_t argument)
{
	const int rc = streams_open(&of_kernel, &devices);

	check("open outside of the partition returned", false, rc);
}

/* Own workspace, but an output in memory of the kernel. */
static void output_outside(intptr_t argument)
{
	int rc;

	check_equal("open again", streams_open(&of_user, &devices), 0);
	rc = frame(&of_user, 0, 0, expected[0]);
	check("run with an output outside of the partition returned", false, rc);
}

void test_model(void)
{
	check_equal("supervisor: open", streams_open(&of_kernel, &devices), 0);
	check_equal("supervisor: run", all_frames(&of_kernel, expected), 0);
	(void)streams_close(&of_kernel, &devices);
	run_user("user thread runs a model", as_user, 0, false);
	for (int turn = 0; turn < 2; turn++) {
		check_equal("frames equal those of supervisor mode",
			    memcmp(found[turn], expected, sizeof(expected)), 0);
	}
	run_user("user thread calls an operator by name", by_name, 0, false);
	run_user("workspace outside of the partition faults", outside, 0, true);
	check("it was not opened", !of_kernel.opened, of_kernel.opened);
	run_user("output outside of the partition faults", output_outside, 0, true);
}
