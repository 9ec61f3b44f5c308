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

#include <vectors.h>

#ifdef __ZEPHYR__
#include <vectors_devicetree.h>
#endif

/* By default, printk() has no floating-point numbers. */
static int64_t thousandths(double value)
{
	return value > -1e15 && value < 1e15 ? (int64_t)(value * 1000) : INT64_MIN;
}

VECTORS_WORKSPACE_DEFINE(vectors_workspace);
static const struct vectors_devices vectors_context = VECTORS_DEVICES_DT_INIT;
OPWEST_ALIGNED(4) static float vectors_input_x[VECTORS_INPUT_X_ELEMENTS];
OPWEST_ALIGNED(4) static float vectors_input_factor[VECTORS_INPUT_FACTOR_ELEMENTS];
OPWEST_ALIGNED(4) static float vectors_output_y[VECTORS_OUTPUT_Y_ELEMENTS];
OPWEST_ALIGNED(8) static int64_t vectors_output_total[VECTORS_OUTPUT_TOTAL_ELEMENTS];
OPWEST_ALIGNED(2) static uint16_t vectors_output_signs[VECTORS_OUTPUT_SIGNS_ELEMENTS];

static int try_vectors(void)
{
	const struct vectors_inputs inputs = {.x = vectors_input_x, .factor = vectors_input_factor};
	const struct vectors_outputs outputs = {.y = vectors_output_y,
		.total = vectors_output_total, .signs = vectors_output_signs};
	int rc = vectors_open(&vectors_workspace, &vectors_context);

	if (rc != 0) {
		printk("vectors: open returned %d\n", rc);
		return rc;
	}
	memset(vectors_workspace.input.bias, 0, VECTORS_INPUT_BIAS_SIZE);
	rc = vectors_run(&inputs, &outputs, &vectors_workspace, &vectors_context);
	if (rc == 0) {
		printk("vectors: y:");
		for (size_t i = 0; i < VECTORS_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId64 "", thousandths((double)vectors_output_y[i]));
		}
		printk(" (thousandths)\n");
		printk("vectors: q:");
		for (size_t i = 0; i < VECTORS_OUTPUT_Q_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)vectors_workspace.output.q[i]);
		}
		printk("\n");
		printk("vectors: total:");
		for (size_t i = 0; i < VECTORS_OUTPUT_TOTAL_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId64 "", vectors_output_total[i]);
		}
		printk("\n");
		printk("vectors: signs:");
		for (size_t i = 0; i < VECTORS_OUTPUT_SIGNS_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)vectors_output_signs[i]);
		}
		printk(" (IEEE half bits)\n");
	}
	printk("vectors: run returned %d\n", rc);
	(void)vectors_close(&vectors_workspace, &vectors_context);
	return rc;
}

int main(void)
{
	if (try_vectors() != 0) {
		return 0;
	}
	return 0;
}
