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

#include <several_targets.h>

#ifdef __ZEPHYR__
#include <several_targets_devicetree.h>
#endif

SEVERAL_TARGETS_WORKSPACE_DEFINE(several_targets_workspace);
static const struct several_targets_devices several_targets_context =
	SEVERAL_TARGETS_DEVICES_DT_INIT;
OPWEST_ALIGNED(2) static int16_t several_targets_input_x[SEVERAL_TARGETS_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(2) static int16_t several_targets_output_y[SEVERAL_TARGETS_OUTPUT_Y_ELEMENTS];

static int try_several_targets(void)
{
	const struct several_targets_inputs inputs = {.x = several_targets_input_x};
	const struct several_targets_outputs outputs = {.y = several_targets_output_y};
	int rc = several_targets_open(&several_targets_workspace, &several_targets_context);

	if (rc != 0) {
		printk("several_targets: open returned %d\n", rc);
		return rc;
	}
	rc = several_targets_run(&inputs, &outputs, &several_targets_workspace,
		&several_targets_context);
	if (rc == 0) {
		printk("several_targets: y:");
		for (size_t i = 0; i < SEVERAL_TARGETS_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)several_targets_output_y[i]);
		}
		printk("\n");
	}
	printk("several_targets: run returned %d\n", rc);
	(void)several_targets_close(&several_targets_workspace, &several_targets_context);
	return rc;
}

int main(void)
{
	if (try_several_targets() != 0) {
		return 0;
	}
	return 0;
}
