/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The golden model "asynchronous" with CONFIG_OPWEST_PROFILE, run three times, the last time with a failure. The counter
 * is incremented by each read, so that every number is known. Prints events, then all points.
 */
#include <inttypes.h>
#include <stdio.h>

#include <asynchronous.h>
#include <opwest/port_profile.h>

struct vendor_dsp {
	int32_t gain;
};

static struct vendor_dsp dsp = {7};
static const struct device names[] = {{"Left", NULL, NULL, NULL},
				      {"Right", NULL, NULL, NULL},
				      {"Narrow", NULL, NULL, NULL},
				      {"Plain", NULL, NULL, NULL}};
static const struct asynchronous_devices devices = {&names[0], &names[1], &names[2], &names[3], &dsp};

ASYNCHRONOUS_WORKSPACE_DEFINE(workspace);

static OPWEST_ALIGNED(32) int32_t control[8] = {-1, 0};
static OPWEST_ALIGNED(32) int32_t raw[16];
static OPWEST_ALIGNED(32) int32_t report[16];
static int32_t extra[12];
static int32_t sum[12];
static uint64_t counter;
static bool traced;

uint64_t opwest_port_profile_counter(void)
{
	return counter++;
}

uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end)
{
	return end - begin;
}

uint64_t opwest_port_profile_frequency(void)
{
	return 0;
}

void opwest_port_profile_trace(const char *name, uint32_t index, bool begins)
{
	if (traced) {
		printf("%c%s %" PRIu32 "\n", begins ? '+' : '-', name, index);
	}
}

int main(void)
{
	const struct asynchronous_inputs inputs = {control, raw, extra};
	const struct asynchronous_outputs outputs = {report, sum};
	int rc = asynchronous_open(&workspace, &devices);

	for (int i = 0; i < 3 && rc == 0; i++) {
		traced = i > 0;
		control[0] = i < 2 ? -1 : 1; /* the first step fails: see operators/steps.c */
		control[1] = i < 2 ? 0 : -5;
		printf("run %d\n", asynchronous_run(&inputs, &outputs, &workspace, &devices));
	}
	for (size_t i = 0; i < sizeof(workspace.profile) / sizeof(workspace.profile[0]); i++) {
		const struct opwest_measure *const m = &workspace.profile[i];
		const struct opwest_point *const p = &asynchronous_points[i];

		printf("point %zu %s %s %u %u: %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
		       opwest_point_kind_name(p->kind), p->name, p->step, p->device, m->runs, m->last, m->min,
		       m->max, m->total);
	}
	rc = rc != 0 ? rc : asynchronous_close(&workspace, &devices);
	return rc == 0 ? 0 : 1;
}
