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

#include <asynchronous.h>

#ifdef __ZEPHYR__
#include <asynchronous_devicetree.h>
#endif

ASYNCHRONOUS_WORKSPACE_DEFINE(asynchronous_workspace);
static const struct asynchronous_devices asynchronous_context = ASYNCHRONOUS_DEVICES_DT_INIT;
OPWEST_ALIGNED(32) static int32_t asynchronous_input_control[ASYNCHRONOUS_INPUT_CONTROL_PADDED];
OPWEST_ALIGNED(32) static int32_t asynchronous_input_raw[ASYNCHRONOUS_INPUT_RAW_PADDED];
OPWEST_ALIGNED(4) static int32_t asynchronous_input_extra[ASYNCHRONOUS_INPUT_EXTRA_ELEMENTS];
OPWEST_ALIGNED(32) static int32_t asynchronous_output_report[ASYNCHRONOUS_OUTPUT_REPORT_PADDED];
OPWEST_ALIGNED(4) static int32_t asynchronous_output_sum[ASYNCHRONOUS_OUTPUT_SUM_ELEMENTS];

static int try_asynchronous(void)
{
	const struct asynchronous_inputs inputs = {.control = asynchronous_input_control,
		.raw = asynchronous_input_raw, .extra = asynchronous_input_extra};
	const struct asynchronous_outputs outputs = {.report = asynchronous_output_report,
		.sum = asynchronous_output_sum};
	int rc = asynchronous_open(&asynchronous_workspace, &asynchronous_context);

	if (rc != 0) {
		printk("asynchronous: open returned %d\n", rc);
		return rc;
	}
	memset(asynchronous_workspace.input.image, 0, ASYNCHRONOUS_INPUT_IMAGE_SIZE);
	memset(asynchronous_workspace.input.kept, 0, ASYNCHRONOUS_INPUT_KEPT_SIZE);
	rc = asynchronous_run(&inputs, &outputs, &asynchronous_workspace, &asynchronous_context);
	if (rc == 0) {
		printk("asynchronous: scores:");
		for (size_t i = 0; i < ASYNCHRONOUS_OUTPUT_SCORES_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)asynchronous_workspace.output.scores[i]);
		}
		printk("\n");
		printk("asynchronous: report:");
		for (size_t i = 0; i < ASYNCHRONOUS_OUTPUT_REPORT_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)asynchronous_output_report[i]);
		}
		printk("\n");
		printk("asynchronous: total:");
		for (size_t i = 0; i < ASYNCHRONOUS_OUTPUT_TOTAL_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)asynchronous_workspace.output.total[i]);
		}
		printk("\n");
		printk("asynchronous: sum:");
		for (size_t i = 0; i < ASYNCHRONOUS_OUTPUT_SUM_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)asynchronous_output_sum[i]);
		}
		printk("\n");
	}
	printk("asynchronous: run returned %d\n", rc);
	(void)asynchronous_close(&asynchronous_workspace, &asynchronous_context);
	return rc;
}

int main(void)
{
	if (try_asynchronous() != 0) {
		return 0;
	}
	return 0;
}
