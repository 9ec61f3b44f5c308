/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Classifies every held-out digit and compares the results with those of the numpy reference. The
 * same file runs on a board, in an emulator and on a host without Zephyr.
 */

#include <stdint.h>
#include <stdio.h>

#include <digits.h>
#ifdef __ZEPHYR__
#include <digits_devicetree.h>
#endif

#include "held_out.h"

enum {
	PREDICTIONS_PER_LINE = 40,
};

DIGITS_WORKSPACE_DEFINE(workspace);

#ifdef __ZEPHYR__
static const struct digits_devices devices = DIGITS_DEVICES_DT_INIT;
#else
static const struct digits_devices devices = {0};
#endif

/** The results for the images so far. */
struct tally {
	int32_t correct;
	int32_t as_reference;
};

/** Run the model on one image. Returns 0 or a negative errno. */
static int classify(const struct held_out_image *image, int32_t *label)
{
	int8_t pixels[HELD_OUT_PIXELS];

	for (int32_t i = 0; i < HELD_OUT_PIXELS; i++) {
		pixels[i] = (int8_t)(image->pixels[i] - 'a');
	}
	return digits_run(&(struct digits_inputs){.image = pixels},
			  &(struct digits_outputs){.label = label}, &workspace, &devices);
}

/** Print every prediction, so that the output of two platforms can be compared line by line. */
static int classify_all(struct tally *tally)
{
	for (int32_t i = 0; i < HELD_OUT_IMAGES; i++) {
		int32_t label = -1;
		int rc = classify(&held_out[i], &label);

		if (rc != 0) {
			printf("\nerror: digits_run of image %d: %d\n", (int)i, rc);
			return rc;
		}
		if (i % PREDICTIONS_PER_LINE == 0) {
			printf("%spredictions:", i == 0 ? "" : "\n");
		}
		printf(" %d", (int)label);
		tally->correct += label == held_out[i].label;
		tally->as_reference += label == held_out[i].reference;
	}
	printf("\n");
	return 0;
}

/** Print the last two lines; the percentage is rounded, without floating point. */
static void report(const struct tally *tally)
{
	int hundredths = (int)((tally->correct * 10000 + HELD_OUT_IMAGES / 2) / HELD_OUT_IMAGES);

	printf("predictions: %d of %d equal the reference\n", (int)tally->as_reference,
	       (int)HELD_OUT_IMAGES);
	printf("accuracy: %d.%02d %%\n", hundredths / 100, hundredths % 100);
}

int main(void)
{
	struct tally tally = {0};
	int rc = digits_open(&workspace, &devices);

	if (rc != 0) {
		printf("error: digits_open: %d\n", rc);
		return 1;
	}

	int run_rc = classify_all(&tally);

	rc = digits_close(&workspace, &devices);
	if (rc != 0) {
		printf("error: digits_close: %d\n", rc);
	}
	if (run_rc != 0 || rc != 0) {
		return 1;
	}
	report(&tally);
	return 0;
}
