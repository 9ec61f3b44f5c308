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
#include <string.h>

#include <accelerated.h>

#ifdef __ZEPHYR__
#include <accelerated_devicetree.h>
#endif

ACCELERATED_WORKSPACE_DEFINE(accelerated_workspace);
static const struct accelerated_devices accelerated_context = ACCELERATED_DEVICES_DT_INIT;
OPWEST_ALIGNED(4) static int32_t accelerated_input_control[ACCELERATED_INPUT_CONTROL_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t accelerated_output_y[ACCELERATED_OUTPUT_Y_ELEMENTS];

static int try_accelerated(void)
{
	const struct accelerated_inputs inputs = {.control = accelerated_input_control};
	const struct accelerated_outputs outputs = {.y = accelerated_output_y};
	int rc = accelerated_open(&accelerated_workspace, &accelerated_context);

	if (rc != 0) {
		printk("accelerated: open returned %d\n", rc);
		return rc;
	}
	memset(accelerated_workspace.input.x, 0, ACCELERATED_INPUT_X_SIZE);
	rc = accelerated_run(&inputs, &outputs, &accelerated_workspace, &accelerated_context);
	if (rc == 0) {
		printk("accelerated: y:");
		for (size_t i = 0; i < ACCELERATED_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)accelerated_output_y[i]);
		}
		printk("\n");
	}
	printk("accelerated: run returned %d\n", rc);
	(void)accelerated_close(&accelerated_workspace, &accelerated_context);
	return rc;
}

int main(void)
{
	if (try_accelerated() != 0) {
		return 0;
	}
	return 0;
}
