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

#include <conventions.h>

#ifdef __ZEPHYR__
#include <conventions_devicetree.h>
#endif

/* By default, printk() has no floating-point numbers. */
static int64_t thousandths(double value)
{
	return value > -1e15 && value < 1e15 ? (int64_t)(value * 1000) : INT64_MIN;
}

CONVENTIONS_WORKSPACE_DEFINE(conventions_workspace);
static const struct conventions_devices conventions_context = CONVENTIONS_DEVICES_DT_INIT;
OPWEST_ALIGNED(16) static int32_t conventions_input_image[CONVENTIONS_INPUT_IMAGE_ELEMENTS];
OPWEST_ALIGNED(16) static uint8_t conventions_input_a[CONVENTIONS_INPUT_A_ELEMENTS];
OPWEST_ALIGNED(16) static uint16_t conventions_input_b[CONVENTIONS_INPUT_B_ELEMENTS];
OPWEST_ALIGNED(16) static double conventions_input_c[CONVENTIONS_INPUT_C_ELEMENTS];
OPWEST_ALIGNED(64) static uint8_t conventions_input_d[CONVENTIONS_INPUT_D_ELEMENTS];
OPWEST_ALIGNED(64) static int32_t conventions_output_scores[CONVENTIONS_OUTPUT_SCORES_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t conventions_output_sum[CONVENTIONS_OUTPUT_SUM_ELEMENTS];
OPWEST_ALIGNED(16) static int32_t conventions_output_seen[CONVENTIONS_OUTPUT_SEEN_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t conventions_output_label[CONVENTIONS_OUTPUT_LABEL_ELEMENTS];
OPWEST_ALIGNED(8) static double conventions_output_mean[CONVENTIONS_OUTPUT_MEAN_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t conventions_output_turned[CONVENTIONS_OUTPUT_TURNED_ELEMENTS];
OPWEST_ALIGNED(8) static int64_t conventions_output_total[CONVENTIONS_OUTPUT_TOTAL_ELEMENTS];
OPWEST_ALIGNED(8) static double conventions_output_shifted[CONVENTIONS_OUTPUT_SHIFTED_ELEMENTS];

static int try_conventions(void)
{
	const struct conventions_inputs inputs = {.image = conventions_input_image,
		.a = conventions_input_a, .b = conventions_input_b, .c = conventions_input_c,
		.d = conventions_input_d};
	const struct conventions_outputs outputs = {.scores = conventions_output_scores,
		.sum = conventions_output_sum, .seen = conventions_output_seen,
		.label = conventions_output_label, .mean = conventions_output_mean,
		.turned = conventions_output_turned, .total = conventions_output_total,
		.shifted = conventions_output_shifted};
	int rc = conventions_open(&conventions_workspace, &conventions_context);

	if (rc != 0) {
		printk("conventions: open returned %d\n", rc);
		return rc;
	}
	rc = conventions_run(&inputs, &outputs, &conventions_workspace, &conventions_context);
	if (rc == 0) {
		printk("conventions: scores:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_SCORES_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)conventions_output_scores[i]);
		}
		printk("\n");
		printk("conventions: sum:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_SUM_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)conventions_output_sum[i]);
		}
		printk("\n");
		printk("conventions: seen:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_SEEN_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)conventions_output_seen[i]);
		}
		printk("\n");
		printk("conventions: label:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_LABEL_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)conventions_output_label[i]);
		}
		printk("\n");
		printk("conventions: mean:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_MEAN_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId64 "", thousandths(conventions_output_mean[i]));
		}
		printk(" (thousandths)\n");
		printk("conventions: turned:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_TURNED_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)conventions_output_turned[i]);
		}
		printk("\n");
		printk("conventions: total:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_TOTAL_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId64 "", conventions_output_total[i]);
		}
		printk("\n");
		printk("conventions: shifted:");
		for (size_t i = 0; i < CONVENTIONS_OUTPUT_SHIFTED_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId64 "", thousandths(conventions_output_shifted[i]));
		}
		printk(" (thousandths)\n");
	}
	printk("conventions: run returned %d\n", rc);
	(void)conventions_close(&conventions_workspace, &conventions_context);
	return rc;
}

int main(void)
{
	if (try_conventions() != 0) {
		return 0;
	}
	return 0;
}
