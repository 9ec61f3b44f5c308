/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of open, run and close of the golden model "accelerated". One case per call: lifecycle CASE.
 */
#include <errno.h>
#include <pthread.h>

#include <accelerated.h>

#include "cases.h"

#define GUARD 64U
#define GUARDED(name, size, alignment)                                                             \
	static OPWEST_ALIGNED(alignment) uint8_t name[GUARD + (size) + GUARD]

/* Test devices: the operators distinguish them by the first letter. */
static const struct device device_a = {"A", NULL, NULL, NULL};
static const struct device device_b = {"B", NULL, NULL, NULL};
static const struct device device_c = {"C", NULL, NULL, NULL};
static const struct device device_d = {"D", NULL, NULL, NULL};
static const struct accelerated_devices all = {&device_a, &device_b, &device_c, &device_d};
static const struct accelerated_devices others = {&device_d, &device_c, &device_b, &device_a};

ACCELERATED_WORKSPACE_DEFINE(defined_workspace);
static const struct accelerated_devices defined_devices = ACCELERATED_DEVICES_DT_INIT;

/* One workspace with guard bytes around each pool; two of them. */
GUARDED(sram_1, ACCELERATED_POOL_SRAM_SIZE, 64);
GUARDED(fast_1, ACCELERATED_POOL_FAST_SIZE, 64);
GUARDED(sram_2, ACCELERATED_POOL_SRAM_SIZE, 64);
GUARDED(fast_2, ACCELERATED_POOL_FAST_SIZE, 64);

static struct accelerated_workspace workspace = {.sram = sram_1 + GUARD, .fast = fast_1 + GUARD};
static struct accelerated_workspace second = {.sram = sram_2 + GUARD, .fast = fast_2 + GUARD};

static int32_t control[2] = {-1, 0};
static int32_t x[16];
static int32_t y[16];
static const struct accelerated_inputs inputs = {control};
static const struct accelerated_outputs outputs = {y};

static void mix(int32_t step, const int32_t *from, int32_t *to, const struct device *dev)
{
	for (int i = 0; i < 16; i++) {
		to[i] = 3 * from[i] + step + dev->name[0];
	}
}

static void reverse(const int32_t *from, int32_t *to)
{
	for (int i = 0; i < 16; i++) {
		to[i] = from[15 - i];
	}
}

/* The steps of the manifest, written by hand. */
static void reference(const int32_t *from, int32_t *to, const struct accelerated_devices *devices)
{
	int32_t a[16], b[16], c[16], d[16], f[16];

	mix(0, from, a, devices->second);
	mix(1, a, b, devices->first);
	reverse(b, c);
	mix(3, c, d, devices->third);
	mix(7, d, f, devices->third);
	reverse(f, to);
	for (int i = 0; i < 16; i++) {
		to[i] += devices->second->name[0] << 8;
	}
}

static void fill(int32_t *values, int32_t seed)
{
	for (int i = 0; i < 16; i++) {
		values[i] = (seed * 7919 + i * 104729) % 1000;
	}
}

/* Run with an input x, which is in the workspace and may be overwritten during the run. */
static int run(const int32_t *from, const struct accelerated_inputs *in, const struct accelerated_outputs *out,
	       struct accelerated_workspace *memory, const struct accelerated_devices *devices)
{
	memcpy(memory->input.x, from, ACCELERATED_INPUT_X_SIZE);
	return accelerated_run(in, out, memory, devices);
}

static void poison(const struct accelerated_workspace *memory)
{
	memset(memory->sram, 0xA5, ACCELERATED_POOL_SRAM_SIZE);
	memset(memory->fast, 0xA5, ACCELERATED_POOL_FAST_SIZE);
}

static void set_guards(uint8_t *memory, size_t size)
{
	memset(memory, 0x5C, GUARD);
	memset(memory + GUARD + size, 0x5C, GUARD);
}

static void check_guards(const uint8_t *memory, size_t size)
{
	for (size_t i = 0; i < GUARD; i++) {
		EXPECT(memory[i] == 0x5C && memory[GUARD + size + i] == 0x5C);
	}
}

static void expect_answer(const int32_t *from, const int32_t *to, const struct accelerated_devices *devices)
{
	int32_t expected[16];

	reference(from, expected, devices);
	EXPECT(memcmp(expected, to, sizeof(expected)) == 0);
}

static void case_good(void)
{
	for (int32_t turn = 0; turn < 20; turn++) {
		fill(x, turn);
		memset(y, 0xA5, sizeof(y));
		EXPECT(accelerated_open(&workspace, &all) == 0);
		EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
		expect_answer(x, y, &all);
		EXPECT(workspace.status.code == 0 && workspace.status.step == OPWEST_NO_STEP);
		EXPECT(accelerated_close(&workspace, &all) == 0);
	}
}

static void case_defined(void)
{
	fill(x, 3);
	EXPECT(defined_workspace.status.code == 0 && defined_workspace.status.step == OPWEST_NO_STEP);
	EXPECT(!defined_workspace.opened && defined_workspace.input.x == NULL);
	EXPECT(strcmp(defined_devices.first->name, "first") == 0 && strcmp(defined_devices.fourth->name, "fourth") == 0);
	EXPECT(accelerated_open(&defined_workspace, &defined_devices) == 0);
	EXPECT(run(x, &inputs, &outputs, &defined_workspace, &defined_devices) == 0);
	expect_answer(x, y, &defined_devices);
	EXPECT(accelerated_close(&defined_workspace, &defined_devices) == 0);
}

static void case_open_null(void)
{
	EXPECT(accelerated_open(NULL, &all) == -EINVAL);
	EXPECT(accelerated_open(&workspace, NULL) == -EINVAL);
	EXPECT(accelerated_open(NULL, NULL) == -EINVAL);
	EXPECT(!workspace.opened);
}

static void case_open_pools(void)
{
	uint8_t *const sram = workspace.sram;
	uint8_t *const fast = workspace.fast;

	workspace.sram = NULL;
	EXPECT(accelerated_open(&workspace, &all) == -EINVAL && !workspace.opened);
	for (uintptr_t off = 1; off < ACCELERATED_POOL_SRAM_ALIGN; off++) {
		workspace.sram = sram + off;
		EXPECT(accelerated_open(&workspace, &all) == -EINVAL && !workspace.opened);
	}
	workspace.sram = sram;
	for (uintptr_t off = 1; off < ACCELERATED_POOL_FAST_ALIGN; off++) {
		workspace.fast = fast + off;
		EXPECT(accelerated_open(&workspace, &all) == -EINVAL && !workspace.opened);
	}
	workspace.fast = fast;
	EXPECT(accelerated_open(&workspace, &all) == 0);
}

static void case_open_devices(void)
{
	const struct accelerated_devices without[] = {
		{NULL, &device_b, &device_c, &device_d},
		{&device_a, NULL, &device_c, &device_d},
		{&device_a, &device_b, NULL, &device_d},
		{&device_a, &device_b, &device_c, NULL},
	};

	for (size_t i = 0; i < 4; i++) {
		EXPECT(accelerated_open(&workspace, &without[i]) == -ENODEV && !workspace.opened);
		EXPECT(workspace.status.code == -ENODEV && workspace.status.step == OPWEST_NO_STEP);
		EXPECT(workspace.status.hook == OPWEST_HOOK_READY && workspace.status.device == i);
	}
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(workspace.status.code == 0 && workspace.status.device == OPWEST_STATUS_NO_DEVICE);
}

/* The context of run is that of open: hooks that were not called are not undone. */
static void case_run_other_devices(void)
{
	EXPECT(accelerated_open(&workspace, &all) == 0);
	for (size_t i = 0; i < 4; i++) {
		const struct device *const mixed[4] = {
			i == 0 ? &device_d : &device_a, i == 1 ? &device_d : &device_b,
			i == 2 ? &device_d : &device_c, i == 3 ? &device_a : &device_d};
		const struct accelerated_devices context = {mixed[0], mixed[1], mixed[2], mixed[3]};

		EXPECT(accelerated_run(&inputs, &outputs, &workspace, &context) == -EINVAL);
	}
	EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
	expect_answer(x, y, &all);
}

/* Inputs in the workspace: their addresses are set while it is open, and aligned. */
static void case_placed(void)
{
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT((uintptr_t)workspace.input.x % ACCELERATED_INPUT_X_ALIGN == 0U);
	EXPECT((uint8_t *)workspace.input.x >= workspace.sram);
	EXPECT((uint8_t *)workspace.input.x + ACCELERATED_INPUT_X_SIZE <= workspace.sram + ACCELERATED_POOL_SRAM_SIZE);
	EXPECT(accelerated_close(&workspace, &all) == 0);
}

static void case_open_twice(void)
{
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(accelerated_open(&workspace, &all) == -EALREADY);
	EXPECT(workspace.opened);
	EXPECT(accelerated_close(&workspace, &all) == 0);
	EXPECT(accelerated_open(&workspace, &all) == 0);
}

static void case_close(void)
{
	EXPECT(accelerated_close(NULL, &all) == -EINVAL);
	EXPECT(accelerated_close(&workspace, NULL) == -EINVAL);
	EXPECT(accelerated_close(&workspace, &all) == -EALREADY);
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(accelerated_close(&workspace, NULL) == -EINVAL && workspace.opened);
	EXPECT(accelerated_close(&workspace, &all) == 0 && !workspace.opened);
	EXPECT(accelerated_close(&workspace, &all) == -EALREADY);
}

static void case_run_null(void)
{
	const struct accelerated_inputs without_control = {NULL};
	const struct accelerated_outputs without_y = {NULL};

	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(accelerated_run(NULL, &outputs, &workspace, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, NULL, &workspace, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, &outputs, NULL, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, &outputs, &workspace, NULL) == -EINVAL);
	EXPECT(accelerated_run(&without_control, &outputs, &workspace, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, &without_y, &workspace, &all) == -EINVAL);
}

static void case_run_misaligned(void)
{
	static OPWEST_ALIGNED(16) uint8_t bytes[128];

	EXPECT(accelerated_open(&workspace, &all) == 0);
	for (size_t off = 1; off < 4; off++) {
		const void *const odd = bytes + off;
		void *const odd_output = bytes + off;
		const struct accelerated_inputs odd_control = {odd};
		const struct accelerated_outputs odd_y = {odd_output};

		EXPECT(accelerated_run(&odd_control, &outputs, &workspace, &all) == -EINVAL);
		EXPECT(accelerated_run(&inputs, &odd_y, &workspace, &all) == -EINVAL);
	}
}

static void case_run_closed(void)
{
	EXPECT(accelerated_run(&inputs, &outputs, &workspace, &all) == -EPERM);
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
	EXPECT(accelerated_close(&workspace, &all) == 0);
	EXPECT(accelerated_run(&inputs, &outputs, &workspace, &all) == -EPERM);
}

static void case_status(void)
{
	static const int32_t codes[] = {1, 7, 2147483647, -EIO, -ETIMEDOUT, -1, -2147483647};
	static const int32_t steps[] = {0, 1, 3, 5, 7};

	EXPECT(accelerated_open(&workspace, &all) == 0);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
			control[0] = steps[j];
			control[1] = codes[i];
			const int rc = run(x, &inputs, &outputs, &workspace, &all);

			EXPECT(rc == (codes[i] > 0 ? -EIO : (int)codes[i]));
			EXPECT(workspace.status.code == codes[i]);
			EXPECT(workspace.status.step == (uint16_t)steps[j]);
			EXPECT(workspace.status.hook == OPWEST_HOOK_OPERATOR);
			EXPECT(workspace.status.device == OPWEST_STATUS_NO_DEVICE);
			EXPECT(strncmp(opwest_model_step_name(&accelerated_model, workspace.status.step), "mix", 3) == 0);
		}
		/* A successful run clears the failure. */
		control[0] = -1;
		fill(x, (int32_t)i);
		EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
		EXPECT(workspace.status.code == 0 && workspace.status.step == OPWEST_NO_STEP);
		expect_answer(x, y, &all);
	}
	EXPECT(accelerated_close(&workspace, &all) == 0);
}

/* After a failing step the following ones are not run. */
static void case_stops(void)
{
	int32_t before[16];

	memset(y, 0x11, sizeof(y));
	memcpy(before, y, sizeof(y));
	control[0] = 3;
	control[1] = 9;
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(accelerated_run(&inputs, &outputs, &workspace, &all) == -EIO);
	EXPECT(memcmp(before, y, sizeof(y)) == 0);
	EXPECT(workspace.opened);
}

static void case_devices_in_order(void)
{
	int32_t with_all[16];

	fill(x, 11);
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
	expect_answer(x, y, &all);
	memcpy(with_all, y, sizeof(y));
	EXPECT(accelerated_close(&workspace, &all) == 0);
	EXPECT(accelerated_open(&workspace, &others) == 0);
	EXPECT(run(x, &inputs, &outputs, &workspace, &others) == 0);
	expect_answer(x, y, &others);
	EXPECT(memcmp(with_all, y, sizeof(y)) != 0);
}

static void case_poisoned(void)
{
	EXPECT(accelerated_open(&workspace, &all) == 0);
	for (int32_t turn = 0; turn < 10; turn++) {
		fill(x, turn);
		poison(&workspace);
		memset(y, 0xA5, sizeof(y));
		EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
		expect_answer(x, y, &all);
	}
}

static void case_guards(void)
{
	static struct {
		uint8_t before[GUARD];
		int32_t values[16];
		uint8_t behind[GUARD];
	} output;
	const struct accelerated_outputs guarded = {output.values};
	set_guards(sram_1, ACCELERATED_POOL_SRAM_SIZE);
	set_guards(fast_1, ACCELERATED_POOL_FAST_SIZE);
	memset(&output, 0x5C, sizeof(output));
	fill(x, 5);
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(run(x, &inputs, &guarded, &workspace, &all) == 0);
	expect_answer(x, output.values, &all);
	EXPECT(accelerated_close(&workspace, &all) == 0);
	check_guards(sram_1, ACCELERATED_POOL_SRAM_SIZE);
	check_guards(fast_1, ACCELERATED_POOL_FAST_SIZE);
	for (size_t i = 0; i < GUARD; i++) {
		EXPECT(output.before[i] == 0x5C && output.behind[i] == 0x5C);
	}
}

/* Two workspaces in turn, one with failures: they do not affect each other. */
static void case_interleaved(void)
{
	int32_t x_2[16], y_2[16];
	int32_t control_2[2] = {5, 77};
	const struct accelerated_inputs inputs_2 = {control_2};
	const struct accelerated_outputs outputs_2 = {y_2};

	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(!second.opened);
	EXPECT(accelerated_open(&second, &others) == 0);
	for (int32_t turn = 0; turn < 10; turn++) {
		fill(x, turn);
		fill(x_2, -turn);
		control_2[0] = turn % 2 == 0 ? 5 : -1;
		EXPECT(run(x, &inputs, &outputs, &workspace, &all) == 0);
		EXPECT(run(x_2, &inputs_2, &outputs_2, &second, &others) == (turn % 2 == 0 ? -EIO : 0));
		expect_answer(x, y, &all);
		EXPECT(workspace.status.code == 0 && second.status.code == (turn % 2 == 0 ? 77 : 0));
		if (turn % 2 != 0) {
			expect_answer(x_2, y_2, &others);
		}
	}
	EXPECT(accelerated_close(&workspace, &all) == 0);
	EXPECT(second.opened);
	EXPECT(accelerated_close(&second, &others) == 0);
}

struct job {
	struct accelerated_workspace *workspace;
	const struct accelerated_devices *devices;
	int32_t seed;
};

static void *work(void *argument)
{
	const struct job *const job = argument;
	int32_t own_x[16], own_y[16];
	const int32_t own_control[2] = {-1, 0};
	const struct accelerated_inputs own_inputs = {own_control};
	const struct accelerated_outputs own_outputs = {own_y};

	EXPECT(accelerated_open(job->workspace, job->devices) == 0);
	for (int32_t turn = 0; turn < 2000; turn++) {
		fill(own_x, job->seed + turn);
		EXPECT(run(own_x, &own_inputs, &own_outputs, job->workspace, job->devices) == 0);
		expect_answer(own_x, own_y, job->devices);
		EXPECT(opwest_find(&accelerated_registry, "reverse") != NULL);
		EXPECT(opwest_model_input(&accelerated_model, "x") != NULL);
	}
	EXPECT(accelerated_close(job->workspace, job->devices) == 0);
	return NULL;
}

static void case_threads(void)
{
	struct job jobs[] = {{&workspace, &all, 1}, {&second, &others, 100000}};
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++) {
		EXPECT(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
	}
	for (size_t i = 0; i < 2; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
	}
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv,
			 CASE(good), CASE(defined), CASE(open_null), CASE(open_pools), CASE(open_devices),
			 CASE(open_twice), CASE(close), CASE(run_null), CASE(run_misaligned), CASE(run_closed),
			 CASE(run_other_devices), CASE(placed),
			 CASE(status), CASE(stops), CASE(devices_in_order), CASE(poisoned), CASE(guards),
			 CASE(interleaved), CASE(threads));
}
