/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The golden model "asynchronous" on a host, where devices are only names: its results, the addresses of its
 * tensors, its vendor-specific handle, and its measurements with CONFIG_OPWEST_PROFILE.
 */
#include <errno.h>
#include <inttypes.h>

#include <asynchronous.h>
#include <opwest/accelerator.h>
#include <opwest/port_profile.h>

#include "cases.h"

#define COUNT 12
#define GUARD 64U

/* As in operators/steps.c: the declarations of the vendor's header. */
struct vendor_dsp {
	int32_t gain;
};

static struct vendor_dsp dsp = {7};
static const struct device left = {"Left", NULL, NULL, NULL};
static const struct device right = {"Right", NULL, NULL, NULL};
static const struct device narrow = {"Narrow", NULL, NULL, NULL};
static const struct device plain = {"Plain", NULL, NULL, NULL};
static const struct asynchronous_devices all = {&left, &right, &narrow, &plain, &dsp};

ASYNCHRONOUS_WORKSPACE_DEFINE(defined_workspace);
static const struct asynchronous_devices defined_devices = ASYNCHRONOUS_DEVICES_DT_INIT;

static OPWEST_ALIGNED(64) uint8_t sram[GUARD + ASYNCHRONOUS_POOL_SRAM_SIZE + GUARD];
static OPWEST_ALIGNED(64) uint8_t shared[GUARD + ASYNCHRONOUS_POOL_SHARED_SIZE + GUARD];
static struct asynchronous_workspace workspace = {.sram = sram + GUARD, .shared = shared + GUARD};

static const int32_t weights[COUNT] = {3, -1, 2, 7, -5, 1, 0, 4, -2, 6, 9, -8};
static const int32_t offsets[COUNT] = {1, 2, 1, 2, 1, 2, 1, 2, -1, -2, -1, -2};

/* Whole cache lines each: the caller's buffers are flushed, too. */
static OPWEST_ALIGNED(32) int32_t control[8] = {-1, 0};
static OPWEST_ALIGNED(32) int32_t raw[16];
static OPWEST_ALIGNED(32) int32_t report[16];
static int32_t extra[COUNT];
static int32_t sum[COUNT];
static const struct asynchronous_inputs inputs = {control, raw, extra};
static const struct asynchronous_outputs outputs = {report, sum};

struct tensors {
	int32_t image[COUNT], kept[COUNT], scores[COUNT], report[COUNT], sum[COUNT], total;
};

static void scale(int32_t step, const int32_t *x, const int32_t *by, int32_t *y, const struct device *dev)
{
	for (int i = 0; i < COUNT; i++) {
		y[i] = x[i] * by[i] + step + dev->name[0];
	}
}

/* The steps of the manifest, in its order, written by hand. */
static void reference(struct tensors *t)
{
	int32_t a[COUNT], c[COUNT];

	scale(1, t->image, weights, a, &left);
	scale(4, raw, offsets, c, &right);
	scale(5, c, offsets, t->report, &right);
	t->total = 1000;
	for (int i = 0; i < COUNT; i++) {
		t->total += a[i] + narrow.name[0];
		t->sum[i] = a[i] + extra[i] - plain.name[0] + t->kept[i] * dsp.gain - (i > 0 ? t->kept[i - 1] : 0);
		t->scores[i] = c[i] + a[i];
	}
}

static void fill(int32_t *values, int32_t seed)
{
	for (int i = 0; i < COUNT; i++) {
		values[i] = (seed * 7919 + i * 104729) % 1000;
	}
}

static void run_and_compare(struct asynchronous_workspace *memory, const struct asynchronous_devices *devices,
			    int32_t seed)
{
	struct tensors t;

	fill(t.image, seed);
	fill(t.kept, seed + 1);
	fill(raw, seed + 2);
	fill(extra, seed + 3);
	reference(&t);
	memcpy(memory->input.image, t.image, sizeof(t.image));
	memcpy(memory->input.kept, t.kept, sizeof(t.kept));
	EXPECT(asynchronous_run(&inputs, &outputs, memory, devices) == 0);
	EXPECT(memcmp(memory->output.scores, t.scores, sizeof(t.scores)) == 0);
	EXPECT(memcmp(report, t.report, sizeof(t.report)) == 0);
	EXPECT(memcmp(sum, t.sum, sizeof(t.sum)) == 0);
	EXPECT(*memory->output.total == t.total);
	EXPECT(memory->status.code == 0 && memory->status.step == OPWEST_NO_STEP);
}

/* A pinned constant is copied at each open: the content of pools is not kept. */
static void case_good(void)
{
	for (int32_t turn = 0; turn < 5; turn++) {
		memset(sram, 0xA5, sizeof(sram));
		memset(shared, 0xA5, sizeof(shared));
		EXPECT(asynchronous_open(&workspace, &all) == 0);
		EXPECT((uintptr_t)workspace.input.image % 32U == 0U);
		EXPECT((uintptr_t)workspace.input.kept % 16U == 0U);
		EXPECT((uint8_t *)workspace.output.scores >= workspace.shared);
		EXPECT((uint8_t *)workspace.output.scores < workspace.shared + ASYNCHRONOUS_POOL_SHARED_SIZE);
		EXPECT((uint8_t *)workspace.input.kept >= workspace.sram);
		EXPECT((uint8_t *)workspace.input.kept + ASYNCHRONOUS_INPUT_KEPT_SIZE <=
		       workspace.sram + ASYNCHRONOUS_POOL_SRAM_SIZE);
		for (int32_t k = 0; k < 4; k++) {
			run_and_compare(&workspace, &all, 4 * turn + k);
		}
		EXPECT(asynchronous_close(&workspace, &all) == 0);
		for (size_t i = 0; i < GUARD; i++) {
			EXPECT(sram[i] == 0xA5 && sram[GUARD + ASYNCHRONOUS_POOL_SRAM_SIZE + i] == 0xA5);
			EXPECT(shared[i] == 0xA5 && shared[GUARD + ASYNCHRONOUS_POOL_SHARED_SIZE + i] == 0xA5);
		}
	}
}

/* A vendor's header does not exist on a host: the default context has NULL for its handle. */
static void case_defined(void)
{
	struct asynchronous_devices context = defined_devices;

	EXPECT(defined_workspace.status.code == 0 && defined_workspace.status.step == OPWEST_NO_STEP);
	EXPECT(!defined_workspace.opened && defined_workspace.input.image == NULL);
	EXPECT(strcmp(context.left->name, "left") == 0 && strcmp(context.plain->name, "plain") == 0);
	EXPECT(context.dsp == NULL);
	EXPECT(asynchronous_open(&defined_workspace, &context) == -ENODEV && !defined_workspace.opened);
	EXPECT(defined_workspace.status.code == -ENODEV && defined_workspace.status.hook == OPWEST_HOOK_READY);
	EXPECT(defined_workspace.status.device == 4 && defined_workspace.status.step == OPWEST_NO_STEP);
	context.dsp = &dsp;
	EXPECT(asynchronous_open(&defined_workspace, &context) == 0);
	EXPECT(asynchronous_run(&inputs, &outputs, &defined_workspace, &defined_devices) == -EINVAL);
	EXPECT(asynchronous_run(&inputs, &outputs, &defined_workspace, &context) == 0);
	EXPECT(asynchronous_close(&defined_workspace, &context) == 0);
}

/* The first failure of any step; then a successful run. The steps are counted in the order in which they run. */
static void case_failures(void)
{
	static const struct {
		int32_t named;
		uint16_t step;
		const char *name;
	} steps[] = {{1, 0, "scale"}, {4, 1, "scale"}, {5, 2, "scale"}, {6, 7, "move"}};
	static const int32_t codes[] = {1, -EIO, -ETIMEDOUT};

	EXPECT(asynchronous_open(&workspace, &all) == 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
			control[0] = steps[i].named;
			control[1] = codes[k];
			EXPECT(asynchronous_run(&inputs, &outputs, &workspace, &all) == (codes[k] > 0 ? -EIO : codes[k]));
			EXPECT(workspace.status.code == codes[k] && workspace.status.step == steps[i].step);
			EXPECT(workspace.status.hook == OPWEST_HOOK_OPERATOR);
			EXPECT(strcmp(opwest_model_step_name(&asynchronous_model, workspace.status.step), steps[i].name) ==
			       0);
			EXPECT(workspace.opened);
			control[0] = -1;
			run_and_compare(&workspace, &all, (int32_t)i);
		}
	}
	EXPECT(asynchronous_close(&workspace, &all) == 0);
}

/* By name: operators with struct device, not those with a vendor-specific handle. */
static void case_registry(void)
{
	int32_t x[COUNT] = {0}, y[COUNT];
	struct opwest_call_device on;
	struct opwest_value args[] = {opwest_in(OPWEST_INT32, x, sizeof(x)), opwest_out(OPWEST_INT32, y, sizeof(y))};
	struct opwest_value moved[] = {opwest_integer(OPWEST_INT32, 2),
				       opwest_in(OPWEST_INT32, control, ASYNCHRONOUS_INPUT_CONTROL_SIZE), args[0], args[1]};

	fill(x, 5);
	EXPECT(asynchronous_open(&workspace, &all) == 0);
	on = asynchronous_call_device(&workspace, ASYNCHRONOUS_DEVICE_DSP_INDEX);
	EXPECT(opwest_call(opwest_find(&asynchronous_registry, "filter"), args, 2, &on) == -ENOTSUP);
	EXPECT(opwest_call(opwest_find(&asynchronous_registry, "filter"), args, 2, NULL) == -ENODEV);
	on = asynchronous_call_device(&workspace, ASYNCHRONOUS_DEVICE_PLAIN_INDEX);
	EXPECT(opwest_call(opwest_find(&asynchronous_registry, "move"), moved, 4, &on) == 0);
	EXPECT(y[3] == x[3] - 'P');
	EXPECT(asynchronous_close(&workspace, &all) == 0);
}

#ifdef CONFIG_OPWEST_PROFILE
/* The counter is incremented by each read, so that every number is known. */
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

/* Three runs, the last one with a failure of the first step. Prints the events of two runs, then all points. */
static void case_profile(void)
{
	EXPECT(asynchronous_open(&workspace, &all) == 0);
	for (int i = 0; i < 3; i++) {
		traced = i > 0;
		control[0] = i < 2 ? -1 : 1;
		control[1] = i < 2 ? 0 : -5;
		printf("run %d\n", asynchronous_run(&inputs, &outputs, &workspace, &all));
	}
	for (size_t i = 0; i < sizeof(workspace.profile) / sizeof(workspace.profile[0]); i++) {
		const struct opwest_measure *const m = &workspace.profile[i];
		const struct opwest_point *const p = &asynchronous_points[i];

		printf("point %zu %s %s %u %u: %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
		       opwest_point_kind_name(p->kind), p->name, p->step, p->device, m->runs, m->last, m->min,
		       m->max, m->total);
	}
	EXPECT(asynchronous_close(&workspace, &all) == 0);
}
#define PROFILE_CASES , CASE(profile)
#else
#define PROFILE_CASES
#endif

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, CASE(good), CASE(defined), CASE(failures), CASE(registry) PROFILE_CASES);
}
