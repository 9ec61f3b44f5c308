/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written once by opwest; you may edit it. Runs each model once on zeros and prints the outputs.
 */
#ifdef __ZEPHYR__
#include <zephyr/sys/printk.h>
#else
#include <stdio.h>
#define printk printf
#endif
#include <inttypes.h>

#include <streams.h>

#ifdef __ZEPHYR__
#include <streams_devicetree.h>
#endif

/* By default, printk() has no floating-point numbers. */
static int64_t thousandths(double value)
{
	return value > -1e15 && value < 1e15 ? (int64_t)(value * 1000) : INT64_MIN;
}

STREAMS_WORKSPACE_DEFINE(streams_workspace);
static const struct streams_devices streams_context = STREAMS_DEVICES_DT_INIT;
OPWEST_ALIGNED(4) static float streams_input_x[STREAMS_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t streams_input_fail[STREAMS_INPUT_FAIL_ELEMENTS];
OPWEST_ALIGNED(4) static float streams_output_y[STREAMS_OUTPUT_Y_ELEMENTS];

static int try_streams(void)
{
	const struct streams_inputs inputs = {.x = streams_input_x, .fail = streams_input_fail};
	const struct streams_outputs outputs = {.y = streams_output_y};
	int rc = streams_open(&streams_workspace, &streams_context);

	if (rc != 0) {
		printk("streams: open returned %d\n", rc);
		return rc;
	}
	rc = streams_run(&inputs, &outputs, &streams_workspace, &streams_context);
	if (rc == 0) {
		printk("streams: y:");
		for (size_t i = 0; i < STREAMS_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId64 "", thousandths((double)streams_output_y[i]));
		}
		printk(" (thousandths)\n");
	}
	printk("streams: run returned %d\n", rc);
	(void)streams_close(&streams_workspace, &streams_context);
	return rc;
}

int main(void)
{
	if (try_streams() != 0) {
		return 0;
	}
	return 0;
}
