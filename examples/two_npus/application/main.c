/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Classifies held-out digits, compares the results with those of the numpy reference, and measures
 * the time of a run. If the application also has the model of manifest_serial.yaml, which waits for
 * every job, both are open at once on the same accelerators, and their times are compared. The same
 * file runs on a board, in an emulator and on a host without Zephyr.
 */

#include <stdint.h>
#include <stdio.h>

#ifdef __ZEPHYR__
#include <zephyr/kernel.h>
#else
#include <time.h>
#endif

#include <two_npus.h>
#ifdef __ZEPHYR__
#include <two_npus_devicetree.h>
#endif

#if __has_include(<two_npus_serial.h>)
#define COMPARE_WITH_SERIAL
#include <two_npus_serial.h>
#ifdef __ZEPHYR__
#include <two_npus_serial_devicetree.h>
#endif
#endif

#include "held_out.h"

TWO_NPUS_WORKSPACE_DEFINE(workspace);
static const struct two_npus_devices devices = TWO_NPUS_DEVICES_DT_INIT;

/** Runs one of the models on the image in its workspace. Returns 0 or a negative errno. */
typedef int (*run_fn)(int32_t *label);

/** The results for the images so far, and the time. */
struct tally {
	int32_t correct;
	int32_t as_reference;
	uint64_t microseconds;
};

#ifdef __ZEPHYR__
static uint32_t now(void)
{
	return k_cycle_get_32();
}

static uint64_t microseconds_since(uint32_t begin)
{
	return k_cyc_to_us_near64(k_cycle_get_32() - begin);
}
#else
static uint32_t now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint32_t)time.tv_sec * 1000000U + (uint32_t)(time.tv_nsec / 1000);
}

static uint64_t microseconds_since(uint32_t begin)
{
	return now() - begin;
}
#endif

static int run_overlapped(int32_t *label)
{
	return two_npus_run(&(struct two_npus_inputs){0}, &(struct two_npus_outputs){label},
			    &workspace, &devices);
}

static int classify_all(const char *model, run_fn run, int8_t *pixels, struct tally *tally)
{
	printf("%s:", model);
	for (int32_t i = 0; i < HELD_OUT_IMAGES; i++) {
		int32_t label = -1;

		for (int32_t j = 0; j < HELD_OUT_PIXELS; j++) {
			pixels[j] = (int8_t)(held_out[i].pixels[j] - 'a');
		}

		const uint32_t begin = now();
		const int rc = run(&label);

		tally->microseconds += microseconds_since(begin);
		if (rc != 0) {
			printf("\nerror: run of image %d: %d\n", (int)i, rc);
			return rc;
		}
		printf(" %d", (int)label);
		tally->correct += label == held_out[i].label;
		tally->as_reference += label == held_out[i].reference;
	}
	printf("\n%s: %d of %d equal the reference, %d us each\n", model, (int)tally->as_reference,
	       (int)HELD_OUT_IMAGES, (int)(tally->microseconds / HELD_OUT_IMAGES));
	return 0;
}

/** Print a ratio without floating point, rounded. */
static void print_ratio(const char *text, uint64_t part, uint64_t whole, int digits)
{
	const uint64_t scale = digits == 2 ? 100 : 1000;
	const uint64_t parts = (part * scale + whole / 2) / whole;

	printf("%s%d.%0*d", text, (int)(parts / scale), digits, (int)(parts % scale));
}

static int measure(struct tally *overlapped)
{
	const int rc = classify_all("two_npus", run_overlapped, workspace.input.image, overlapped);

	if (rc != 0) {
		return rc;
	}
	print_ratio("accuracy: ", (uint64_t)overlapped->correct * 100, HELD_OUT_IMAGES, 2);
	printf(" %%\n");
	return 0;
}

#ifdef COMPARE_WITH_SERIAL
TWO_NPUS_SERIAL_WORKSPACE_DEFINE(serial_workspace);
static const struct two_npus_serial_devices serial_devices = TWO_NPUS_SERIAL_DEVICES_DT_INIT;

static int run_serial(int32_t *label)
{
	return two_npus_serial_run(&(struct two_npus_serial_inputs){0},
				   &(struct two_npus_serial_outputs){label}, &serial_workspace,
				   &serial_devices);
}

/** The models share the active accelerators, because their programs are the same. */
static int compare(const struct tally *overlapped)
{
	struct tally serial = {0};
	int rc = two_npus_serial_open(&serial_workspace, &serial_devices);

	if (rc != 0) {
		printf("error: two_npus_serial_open: %d\n", rc);
		return rc;
	}

	const int run_rc =
		classify_all("two_npus_serial", run_serial, serial_workspace.input.image, &serial);

	rc = two_npus_serial_close(&serial_workspace, &serial_devices);
	if (rc != 0) {
		printf("error: two_npus_serial_close: %d\n", rc);
	}
	if (run_rc != 0 || rc != 0) {
		return -1;
	}
	print_ratio("makespan: ", overlapped->microseconds, serial.microseconds, 3);
	printf(" of the serial one\n");
	return 0;
}
#else
static int compare(const struct tally *overlapped)
{
	(void)overlapped;
	return 0;
}
#endif

int main(void)
{
	struct tally overlapped = {0};
	int rc = two_npus_open(&workspace, &devices);

	if (rc != 0) {
		printf("error: two_npus_open: %d\n", rc);
		return 1;
	}

	int failed = measure(&overlapped);

	if (failed == 0) {
		failed = compare(&overlapped);
	}
	rc = two_npus_close(&workspace, &devices);
	if (rc != 0) {
		printf("error: two_npus_close: %d\n", rc);
	}
	if (failed != 0 || rc != 0) {
		return 1;
	}
	printf("done\n");
	return 0;
}
