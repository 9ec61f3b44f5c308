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

#include <adder.h>

#ifdef __ZEPHYR__
#include <adder_devicetree.h>
#endif

ADDER_WORKSPACE_DEFINE(adder_workspace);
static const struct adder_devices adder_context = ADDER_DEVICES_DT_INIT;
OPWEST_ALIGNED(16) static int32_t adder_input_x[ADDER_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t adder_output_y[ADDER_OUTPUT_Y_ELEMENTS];

static int try_adder(void)
{
	const struct adder_inputs inputs = {.x = adder_input_x};
	const struct adder_outputs outputs = {.y = adder_output_y};
	int rc = adder_open(&adder_workspace, &adder_context);

	if (rc != 0) {
		printk("adder: open returned %d\n", rc);
		return rc;
	}
	rc = adder_run(&inputs, &outputs, &adder_workspace, &adder_context);
	if (rc == 0) {
		printk("adder: y:");
		for (size_t i = 0; i < ADDER_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)adder_output_y[i]);
		}
		printk("\n");
	}
	printk("adder: run returned %d\n", rc);
	(void)adder_close(&adder_workspace, &adder_context);
	return rc;
}

int main(void)
{
	if (try_adder() != 0) {
		return 0;
	}
	return 0;
}
