/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Feeds sound to the model, 100 ms in each run. Prints the recognized words, and whether the
 * reference agrees. The same file runs on a board, in an emulator and on a host without Zephyr.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <keyword_spotting.h>
#ifdef __ZEPHYR__
#include <keyword_spotting_devicetree.h>
#endif

#include "cases.h"

KEYWORD_SPOTTING_WORKSPACE_DEFINE(workspace);
static const struct keyword_spotting_devices devices = KEYWORD_SPOTTING_DEVICES_DT_INIT;

/** The model's classes, in the order of its outputs. */
static const char *const words[OUTPUT_ELEMENTS] = {
	"down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown",
};

/** A score of 50 %. */
enum {
	SURE = 0
};

static int largest(const output_t *scores)
{
	int found = 0;

	for (int i = 1; i < OUTPUT_ELEMENTS; i++) {
		if (scores[i] > scores[found]) {
			found = i;
		}
	}
	return found;
}

/** Return whether all scores are within 1 of the reference: compilers round differently. */
static int agrees(const output_t *scores, const output_t *reference)
{
	for (int i = 0; i < OUTPUT_ELEMENTS; i++) {
		if (abs((int)scores[i] - (int)reference[i]) > 1) {
			return 0;
		}
	}
	return 1;
}

int main(void)
{
	output_t scores[OUTPUT_ELEMENTS];
	int agreed = 0;
	int previous = -1;
	int rc = keyword_spotting_open(&workspace, &devices);

	for (int i = 0; rc == 0 && i < CASES; i++) {
		const struct keyword_spotting_inputs inputs = {.audio = case_input[i]};
		const struct keyword_spotting_outputs outputs = {.output = scores};

		rc = keyword_spotting_run(&inputs, &outputs, &workspace, &devices);
		if (rc == 0) {
			int word = largest(scores);

			if (scores[word] >= SURE && word != previous) {
				printf("%d.%d s: %s\n", (i + 1) / 10, (i + 1) % 10, words[word]);
				previous = word;
			}
			agreed += agrees(scores, case_output[i]);
		}
	}
	if (rc != 0) {
		printf("error: %d\n", rc);
		return 0;
	}
	printf("cases: %d of %d agree with the reference\n", agreed, CASES);
	return 0;
}
