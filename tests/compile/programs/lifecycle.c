/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of open, run and close of the golden model "accelerated". */
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

/* One workspace with guard bytes around each pool; two of them. */
GUARDED(sram_1, ACCELERATED_POOL_SRAM_SIZE, 64);
GUARDED(fast_1, ACCELERATED_POOL_FAST_SIZE, 64);
GUARDED(sram_2, ACCELERATED_POOL_SRAM_SIZE, 64);
GUARDED(fast_2, ACCELERATED_POOL_FAST_SIZE, 64);

static struct accelerated_workspace workspace = {.sram = sram_1 + GUARD, .fast = fast_1 + GUARD};
static struct accelerated_workspace second = {.sram = sram_2 + GUARD, .fast = fast_2 + GUARD};

static int32_t control[2] = {-1, 0};
static int32_t x[16];
static struct {
	uint8_t before[GUARD];
	int32_t y[16];
	uint8_t behind[GUARD];
} result;
static const struct accelerated_inputs inputs = {control};
static const struct accelerated_outputs outputs = {result.y};

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

static void run_and_compare(struct accelerated_workspace *memory, const struct accelerated_devices *devices,
			    int32_t seed)
{
	fill(x, seed);
	memset(result.y, 0xA5, sizeof(result.y));
	EXPECT(run(x, &inputs, &outputs, memory, devices) == 0);
	expect_answer(x, result.y, devices);
	EXPECT(memory->status.code == 0 && memory->status.step == OPWEST_NO_STEP);
}

/* The content of pools is not kept: neither between runs, nor when the model is opened again. */
static void case_good(void)
{
	set_guards(sram_1, ACCELERATED_POOL_SRAM_SIZE);
	set_guards(fast_1, ACCELERATED_POOL_FAST_SIZE);
	set_guards((uint8_t *)&result, sizeof(result.y));
	for (int32_t turn = 0; turn < 10; turn++) {
		EXPECT(accelerated_open(&workspace, &all) == 0);
		for (int32_t k = 0; k < 3; k++) {
			poison(&workspace);
			run_and_compare(&workspace, &all, 3 * turn + k);
		}
		EXPECT(accelerated_close(&workspace, &all) == 0);
	}
	check_guards(sram_1, ACCELERATED_POOL_SRAM_SIZE);
	check_guards(fast_1, ACCELERATED_POOL_FAST_SIZE);
	check_guards((uint8_t *)&result, sizeof(result.y));
}

static void case_open_and_close(void)
{
	EXPECT(accelerated_open(NULL, &all) == -EINVAL);
	EXPECT(accelerated_open(&workspace, NULL) == -EINVAL);
	EXPECT(accelerated_open(NULL, NULL) == -EINVAL);
	EXPECT(accelerated_close(NULL, &all) == -EINVAL);
	EXPECT(accelerated_close(&workspace, NULL) == -EINVAL);
	EXPECT(accelerated_close(&workspace, &all) == -EALREADY && !workspace.opened);
	for (int turn = 0; turn < 2; turn++) {
		EXPECT(accelerated_open(&workspace, &all) == 0);
		EXPECT(accelerated_open(&workspace, &all) == -EALREADY && workspace.opened);
		EXPECT(accelerated_close(&workspace, NULL) == -EINVAL && workspace.opened);
		EXPECT(accelerated_close(&workspace, &all) == 0 && !workspace.opened);
		EXPECT(accelerated_close(&workspace, &all) == -EALREADY);
	}
}

static void expect_refused_pools(uint8_t **pool, uintptr_t align)
{
	uint8_t *const right = *pool;

	for (uintptr_t off = 1; off < align; off++) {
		*pool = right + off;
		EXPECT(accelerated_open(&workspace, &all) == -EINVAL && !workspace.opened);
	}
	*pool = NULL;
	EXPECT(accelerated_open(&workspace, &all) == -EINVAL && !workspace.opened);
	*pool = right;
}

static void case_open_pools(void)
{
	expect_refused_pools(&workspace.sram, ACCELERATED_POOL_SRAM_ALIGN);
	expect_refused_pools(&workspace.fast, ACCELERATED_POOL_FAST_ALIGN);
	EXPECT(accelerated_open(&workspace, &all) == 0);
}

static struct accelerated_devices with_other(size_t i, const struct device *other)
{
	return (struct accelerated_devices){i == 0 ? other : &device_a, i == 1 ? other : &device_b,
					    i == 2 ? other : &device_c, i == 3 ? other : &device_d};
}

static void case_open_devices(void)
{
	for (size_t i = 0; i < 4; i++) {
		const struct accelerated_devices without = with_other(i, NULL);

		EXPECT(accelerated_open(&workspace, &without) == -ENODEV && !workspace.opened);
		EXPECT(workspace.status.code == -ENODEV && workspace.status.step == OPWEST_NO_STEP);
		EXPECT(workspace.status.hook == OPWEST_HOOK_READY && workspace.status.device == i);
	}
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(workspace.status.code == 0 && workspace.status.device == OPWEST_STATUS_NO_DEVICE);
	/* The context of run is that of open: hooks that were not called are not undone. */
	for (size_t i = 0; i < 4; i++) {
		const struct accelerated_devices context = with_other(i, i == 3 ? &device_a : &device_d);

		EXPECT(accelerated_run(&inputs, &outputs, &workspace, &context) == -EINVAL);
	}
	run_and_compare(&workspace, &all, 0);
}

static void case_run_arguments(void)
{
	static OPWEST_ALIGNED(16) uint8_t bytes[128];
	const struct accelerated_inputs without_control = {NULL};
	const struct accelerated_outputs without_y = {NULL};

	EXPECT(accelerated_run(&inputs, &outputs, &workspace, &all) == -EPERM);
	EXPECT(accelerated_open(&workspace, &all) == 0);
	EXPECT(accelerated_run(NULL, &outputs, &workspace, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, NULL, &workspace, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, &outputs, NULL, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, &outputs, &workspace, NULL) == -EINVAL);
	EXPECT(accelerated_run(&without_control, &outputs, &workspace, &all) == -EINVAL);
	EXPECT(accelerated_run(&inputs, &without_y, &workspace, &all) == -EINVAL);
	for (size_t off = 1; off < 4; off++) {
		const struct accelerated_inputs odd_control = {(const void *)(bytes + off)};
		const struct accelerated_outputs odd_y = {(void *)(bytes + off)};

		EXPECT(accelerated_run(&odd_control, &outputs, &workspace, &all) == -EINVAL);
		EXPECT(accelerated_run(&inputs, &odd_y, &workspace, &all) == -EINVAL);
	}
	run_and_compare(&workspace, &all, 1);
	EXPECT(accelerated_close(&workspace, &all) == 0);
	EXPECT(accelerated_run(&inputs, &outputs, &workspace, &all) == -EPERM);
}

/* After a failing step the following ones are not run: the first four steps do not write y. */
static void case_status(void)
{
	static const int32_t codes[] = {1, 7, 2147483647, -EIO, -ETIMEDOUT, -1, -2147483647};
	static const int32_t steps[] = {0, 1, 3, 5, 7};
	int32_t before[16];

	memset(before, 0x11, sizeof(before));
	EXPECT(accelerated_open(&workspace, &all) == 0);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
			control[0] = steps[j];
			control[1] = codes[i];
			memcpy(result.y, before, sizeof(before));
			EXPECT_CODE(run(x, &inputs, &outputs, &workspace, &all), codes[i] > 0 ? -EIO : codes[i]);
			EXPECT(memcmp(result.y, before, sizeof(before)) == 0 || steps[j] > 3);
			EXPECT(workspace.opened);
			EXPECT(workspace.status.code == codes[i]);
			EXPECT(workspace.status.step == (uint16_t)steps[j]);
			EXPECT(workspace.status.hook == OPWEST_HOOK_OPERATOR);
			EXPECT(workspace.status.device == OPWEST_STATUS_NO_DEVICE);
			EXPECT(strncmp(opwest_model_step_name(&accelerated_model, workspace.status.step), "mix", 3) == 0);
		}
		/* A successful run clears the failure. */
		control[0] = -1;
		run_and_compare(&workspace, &all, (int32_t)i);
	}
	EXPECT(accelerated_close(&workspace, &all) == 0);
}

struct job {
	struct accelerated_workspace *workspace;
	const struct accelerated_devices *devices;
	int32_t seed;
	bool fails;
};

static void *work(void *argument)
{
	const struct job *const job = argument;
	int32_t own_x[16], own_y[16];
	int32_t own_control[2] = {-1, 77};
	const struct accelerated_inputs own_inputs = {own_control};
	const struct accelerated_outputs own_outputs = {own_y};

	EXPECT(accelerated_open(job->workspace, job->devices) == 0);
	for (int32_t turn = 0; turn < 2000; turn++) {
		const bool fails = job->fails && turn % 8 == 0;

		own_control[0] = fails ? 5 : -1;
		fill(own_x, job->seed + turn);
		EXPECT_CODE(run(own_x, &own_inputs, &own_outputs, job->workspace, job->devices), fails ? -EIO : 0);
		EXPECT(job->workspace->status.code == (fails ? 77 : 0));
		if (!fails) {
			expect_answer(own_x, own_y, job->devices);
		}
		EXPECT(opwest_find(&accelerated_registry, "reverse") != NULL);
		EXPECT(opwest_model_input(&accelerated_model, "x") != NULL);
	}
	EXPECT(accelerated_close(job->workspace, job->devices) == 0);
	return NULL;
}

/* Two workspaces at the same time, one with failures: they do not affect each other. */
static void case_threads(void)
{
	struct job jobs[] = {{&workspace, &all, 1, false}, {&second, &others, 100000, true}};
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
	return RUN_CASES(argc, argv, CASE(good), CASE(open_and_close), CASE(open_pools), CASE(open_devices),
			 CASE(run_arguments), CASE(status), CASE(threads));
}
