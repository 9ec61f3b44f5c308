/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Reads frames of a vibration sensor, runs the model on each, and prints the condition of the
 * machine when it changes. The model keeps its filters and its window between the runs.
 */

#include <stdint.h>
#include <stdio.h>

#include <vibration.h>
#ifdef __ZEPHYR__
#include <vibration_devicetree.h>
#endif

#include "recording.h"
#include "sensor.h"

VIBRATION_WORKSPACE_DEFINE(workspace);
static const struct vibration_devices devices = VIBRATION_DEVICES_DT_INIT;

/** Frames until the model has seen a full window. */
enum {
	WINDOW = 8
};

static const char *const conditions[] = {"normal", "imbalance", "looseness", "bearing"};

int main(void)
{
	int32_t label = -1;
	int32_t previous = -1;
	int equal = 0;
	int lost = 0;
	int rc = vibration_open(&workspace, &devices);

	for (int i = 0; i < FRAMES && lost == 0 && rc == 0; i++) {
		int16_t frame[SENSOR_SAMPLES];
		float features[6];

		lost = sensor_read(frame);
		rc = vibration_run(
			&(struct vibration_inputs){.frame = frame},
			&(struct vibration_outputs){.label = &label, .features = features},
			&workspace, &devices);
		if (i + 1 >= WINDOW && label != previous) {
			printf("%4d ms: %s\n", 20 * (i + 1), conditions[label]);
			previous = label;
		}
		equal += label == expected[i];
	}
	if (rc != 0 || lost > 0) {
		printf("error: %d, lost frames: %d\n", rc, lost);
		return 0;
	}
	printf("frames: %d of %d equal the reference\n", equal, FRAMES);
	return 0;
}
