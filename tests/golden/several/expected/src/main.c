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

#include <up.h>
#include <down.h>

#ifdef __ZEPHYR__
#include <up_devicetree.h>
#include <down_devicetree.h>
#endif

UP_WORKSPACE_DEFINE(up_workspace);
static const struct up_devices up_context = UP_DEVICES_DT_INIT;
OPWEST_ALIGNED(4) static int32_t up_input_x[UP_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t up_output_y[UP_OUTPUT_Y_ELEMENTS];

static int try_up(void)
{
	const struct up_inputs inputs = {.x = up_input_x};
	const struct up_outputs outputs = {.y = up_output_y};
	int rc = up_open(&up_workspace, &up_context);

	if (rc != 0) {
		printk("up: open returned %d\n", rc);
		return rc;
	}
	rc = up_run(&inputs, &outputs, &up_workspace, &up_context);
	if (rc == 0) {
		printk("up: y:");
		for (size_t i = 0; i < UP_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)up_output_y[i]);
		}
		printk("\n");
	}
	printk("up: run returned %d\n", rc);
	(void)up_close(&up_workspace, &up_context);
	return rc;
}

DOWN_WORKSPACE_DEFINE(down_workspace);
static const struct down_devices down_context = DOWN_DEVICES_DT_INIT;
OPWEST_ALIGNED(4) static int32_t down_input_x[DOWN_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t down_output_y[DOWN_OUTPUT_Y_ELEMENTS];

static int try_down(void)
{
	const struct down_inputs inputs = {.x = down_input_x};
	const struct down_outputs outputs = {.y = down_output_y};
	int rc = down_open(&down_workspace, &down_context);

	if (rc != 0) {
		printk("down: open returned %d\n", rc);
		return rc;
	}
	rc = down_run(&inputs, &outputs, &down_workspace, &down_context);
	if (rc == 0) {
		printk("down: y:");
		for (size_t i = 0; i < DOWN_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)down_output_y[i]);
		}
		printk("\n");
	}
	printk("down: run returned %d\n", rc);
	(void)down_close(&down_workspace, &down_context);
	return rc;
}

int main(void)
{
	if (try_up() != 0) {
		return 0;
	}
	if (try_down() != 0) {
		return 0;
	}
	return 0;
}
