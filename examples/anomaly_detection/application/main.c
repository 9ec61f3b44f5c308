/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The model was trained to reconstruct the sound of healthy machines: a large difference between
 * input and output is an anomaly. The score is the mean of the squared differences. The same file
 * runs on a board, in an emulator and on a host without Zephyr, for the int8 and the float model.
 */

#include <stdint.h>
#include <stdio.h>

#include <anomaly_detection.h>
#ifdef __ZEPHYR__
#include <anomaly_detection_devicetree.h>
#endif

#include "cases.h"

ANOMALY_DETECTION_WORKSPACE_DEFINE(workspace);
static const struct anomaly_detection_devices devices = ANOMALY_DETECTION_DEVICES_DT_INIT;

static float input_value(input_t value)
{
	return ((float)value - INPUT_ZERO_POINT) * INPUT_SCALE;
}

static float output_value(output_t value)
{
	return ((float)value - OUTPUT_ZERO_POINT) * OUTPUT_SCALE;
}

static float score(const input_t *input, const output_t *output)
{
	float sum = 0.0f;

	for (int i = 0; i < OUTPUT_ELEMENTS; i++) {
		float difference = input_value(input[i]) - output_value(output[i]);

		sum += difference * difference;
	}
	return sum / OUTPUT_ELEMENTS;
}

/** Return whether two scores are equal except for rounding. */
static int agrees(float one, float other)
{
	float gap = one > other ? one - other : other - one;

	return gap <= 0.001f * (other + 1.0f);
}

/** Print a score without floating point, which small C libraries cannot print. */
static void show(int number, float value)
{
	int hundredths = (int)(value * 100.0f + 0.5f);

	printf("case %d: score %d.%02d\n", number, hundredths / 100, hundredths % 100);
}

int main(void)
{
	static output_t output[OUTPUT_ELEMENTS];
	int agreed = 0;
	int rc = anomaly_detection_open(&workspace, &devices);

	for (int i = 0; rc == 0 && i < CASES; i++) {
		rc = anomaly_detection_run(&(struct anomaly_detection_inputs){case_input[i]},
					   &(struct anomaly_detection_outputs){output}, &workspace,
					   &devices);
		if (rc == 0) {
			float found = score(case_input[i], output);

			show(i, found);
			agreed += agrees(found, score(case_input[i], case_output[i]));
		}
	}
	if (rc != 0) {
		printf("error: %d\n", rc);
		return 0;
	}
	printf("cases: %d of %d agree with the reference\n", agreed, CASES);
	return 0;
}
