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

#include <labels.h>
#include <detection.h>

#ifdef __ZEPHYR__
#include <labels_devicetree.h>
#include <detection_devicetree.h>
#endif

LABELS_WORKSPACE_DEFINE(labels_workspace);
static const struct labels_devices labels_context = LABELS_DEVICES_DT_INIT;
OPWEST_ALIGNED(2) static int16_t labels_input_image[LABELS_INPUT_IMAGE_ELEMENTS];
OPWEST_ALIGNED(2) static int16_t labels_output_scores[LABELS_OUTPUT_SCORES_ELEMENTS];

static int try_labels(void)
{
	const struct labels_inputs inputs = {.image = labels_input_image};
	const struct labels_outputs outputs = {.scores = labels_output_scores};
	int rc = labels_open(&labels_workspace, &labels_context);

	if (rc != 0) {
		printk("labels: open returned %d\n", rc);
		return rc;
	}
	rc = labels_run(&inputs, &outputs, &labels_workspace, &labels_context);
	if (rc == 0) {
		printk("labels: scores:");
		for (size_t i = 0; i < LABELS_OUTPUT_SCORES_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)labels_output_scores[i]);
		}
		printk("\n");
	}
	printk("labels: run returned %d\n", rc);
	(void)labels_close(&labels_workspace, &labels_context);
	return rc;
}

DETECTION_WORKSPACE_DEFINE(detection_workspace);
static const struct detection_devices detection_context = DETECTION_DEVICES_DT_INIT;

static int try_detection(void)
{
	const struct detection_inputs inputs = {.reserved = 0};
	const struct detection_outputs outputs = {.reserved = 0};
	int rc = detection_open(&detection_workspace, &detection_context);

	if (rc != 0) {
		printk("detection: open returned %d\n", rc);
		return rc;
	}
	memset(detection_workspace.input.x, 0, DETECTION_INPUT_X_SIZE);
	rc = detection_run(&inputs, &outputs, &detection_workspace, &detection_context);
	if (rc == 0) {
		printk("detection: y:");
		for (size_t i = 0; i < DETECTION_OUTPUT_Y_ELEMENTS && i < 8U; i++) {
			printk(" %" PRId32 "", (int32_t)detection_workspace.output.y[i]);
		}
		printk("\n");
	}
	printk("detection: run returned %d\n", rc);
	(void)detection_close(&detection_workspace, &detection_context);
	return rc;
}

int main(void)
{
	if (try_labels() != 0) {
		return 0;
	}
	if (try_detection() != 0) {
		return 0;
	}
	return 0;
}
