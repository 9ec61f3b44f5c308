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

#include <minimal.h>

#ifdef __ZEPHYR__
#include <minimal_devicetree.h>
#endif

MINIMAL_WORKSPACE_DEFINE(minimal_workspace);
static const struct minimal_devices minimal_context = MINIMAL_DEVICES_DT_INIT;
OPWEST_ALIGNED(2) static int16_t minimal_input_x[MINIMAL_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(2) static int16_t minimal_output_y[MINIMAL_OUTPUT_Y_ELEMENTS];

static int try_minimal(void)
{
	const struct minimal_inputs inputs = {.x = minimal_input_x};
	const struct minimal_outputs outputs = {.y = minimal_output_y};
	int rc = minimal_open(&minimal_workspace, &minimal_context);

	if (rc != 0) {
		printk("minimal: open returned %d\n", rc);
		return rc;
	}
	rc = minimal_run(&inputs, &outputs, &minimal_workspace, &minimal_context);
	if (rc == 0) {
		printk("minimal: y:");
		for (size_t i = 0; i < MINIMAL_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)minimal_output_y[i]);
		}
		printk("\n");
	}
	printk("minimal: run returned %d\n", rc);
	(void)minimal_close(&minimal_workspace, &minimal_context);
	return rc;
}

int main(void)
{
	return try_minimal();
}
