/* SPDX-License-Identifier: Apache-2.0 */
/* The model `two_npus` for user threads, through a runner. */
#include <errno.h>
#include <string.h>

#include <opwest/npu_emul.h>

#include <two_npus.h>
#include <two_npus_runner.h>

#include "held_out.h"
#include "userspace.h"

/* Above the user threads (5) and below the threads of the accelerators. */
TWO_NPUS_RUNNER_DEFINE(npus, 2048, 3);
static const struct device *const runner = DEVICE_GET(npus);
static const void *const permitted[] = {DEVICE_GET(npus)};
static const struct device *const npu0 = DEVICE_DT_GET(TWO_NPUS_DEVICE_NPU0_NODE);

static K_APP_BMEM(user_partition) int8_t image[HELD_OUT_PIXELS];
static K_APP_BMEM(user_partition) int32_t label;
static K_APP_BMEM(user_partition) volatile int results[2];
static int8_t secret[HELD_OUT_PIXELS];
static int32_t target;

static void take(int index)
{
	for (int i = 0; i < HELD_OUT_PIXELS; i++) {
		image[i] = (int8_t)(held_out[index].pixels[i] - 'a');
	}
}

static int run(int32_t timeout_ms)
{
	return two_npus_runner_run(runner, &(struct two_npus_runner_inputs){.image = image},
				   &(struct two_npus_runner_outputs){.label = &label}, timeout_ms);
}

static void all_images(intptr_t argument)
{
	int correct = 0;
	int rc = 0;

	for (int i = 0; i < HELD_OUT_IMAGES && rc == 0; i++) {
		take(i);
		label = -1;
		rc = run(-1);
		correct += label == held_out[i].reference;
	}
	check("all images", rc == 0, rc);
	check("equal the reference", correct == HELD_OUT_IMAGES, correct);
	rc = opwest_runner_run(runner, (const void *const[]){NULL}, (void *const[]){&label}, -1);
	check_equal("NULL", rc, -EINVAL);
}

/* The pointers that a user thread must not pass; the argument selects one. */
static const struct {
	const char *name;
	const struct device *device;
	const int8_t *image;
	int32_t *label;
} forged[] = {
	{"image in memory of the kernel", DEVICE_GET(npus), secret, &label},
	{"image beyond the memory", DEVICE_GET(npus), (const int8_t *)UINTPTR_MAX - 8, &label},
	{"label in memory of the kernel", DEVICE_GET(npus), image, &target},
	{"label in flash", DEVICE_GET(npus), image, (int32_t *)&held_out[0]},
	{"accelerator as runner", DEVICE_DT_GET(TWO_NPUS_DEVICE_NPU0_NODE), image, &label},
	{"memory of the thread as runner", (const struct device *)image, image, &label},
};

static void forge(intptr_t index)
{
	const int rc = opwest_runner_run(forged[index].device,
					 (const void *const[]){forged[index].image},
					 (void *const[]){forged[index].label}, -1);

	check(forged[index].name, false, rc);
}

/* The pointers are in memory of the kernel, those in them are valid. */
static const void *pointers[1];

static void forge_array(intptr_t argument)
{
	check("array of pointers", false,
	      opwest_runner_run(runner, pointers, (void *const[]){&label}, -1));
}

static void forge_status(intptr_t argument)
{
	check("status in memory of the kernel", false,
	      opwest_runner_status(runner, (struct opwest_status *)secret));
}

static void write_workspace(intptr_t argument)
{
	npus_workspace.slots[0].dev = NULL;
	check("write to the workspace of the runner", false, 0);
}

/* Runs once, with the time-out of the argument, and leaves its result. */
static void once(intptr_t timeout_ms)
{
	results[FIRST] = run((int32_t)timeout_ms);
}

static void contend(intptr_t timeout_ms)
{
	results[SECOND] = run((int32_t)timeout_ms);
}

static void interrupt(intptr_t argument)
{
	results[SECOND] = opwest_runner_cancel(runner);
}

static void recovers(const char *name)
{
	take(3);
	label = -1;
	results[FIRST] = -1;
	run_user(name, once, -1, false);
	check("correct label", results[FIRST] == 0 && label == held_out[3].reference, label);
}

static void test_time(void)
{
	struct opwest_status status;

	/* A run that does not end: of the caller's time-out, then of the device's. */
	opwest_npu_emul_hang(npu0, 0);
	run_user("run with a time-out", once, 100, false);
	check("time-out", results[FIRST] == -ETIMEDOUT, results[FIRST]);
	recovers("run after a time-out");
	opwest_npu_emul_hang(npu0, 0);
	run_user("run on a device that hangs", once, -1, false);
	check("time-out of the device", results[FIRST] == -ETIMEDOUT, results[FIRST]);
	(void)opwest_runner_status(runner, &status);
	check("status", status.hook == OPWEST_HOOK_SYNC && status.code == -ETIMEDOUT, status.hook);
	recovers("run after a time-out of the device");

	opwest_npu_emul_hang(npu0, 0);
	begin(FIRST, once, 5, -1);
	k_msleep(30);
	begin(SECOND, interrupt, 5, 0);
	end(SECOND, "cancel", false);
	end(FIRST, "cancelled run", false);
	check("cancelled", results[FIRST] == -ECANCELED && results[SECOND] == 0, results[FIRST]);
	recovers("run after a cancelled one");
}

static void test_callers(void)
{
	opwest_npu_emul_hang(npu0, 0);
	begin(FIRST, once, 5, 300);
	k_msleep(30);
	begin(SECOND, contend, 5, 50);
	end(SECOND, "second caller", false);
	check("runner in use", results[SECOND] == -EAGAIN, results[SECOND]);
	begin(SECOND, contend, 5, -1);
	end(FIRST, "first caller", false);
	end(SECOND, "second caller waits", false);
	check("in turn", results[FIRST] == -ETIMEDOUT && results[SECOND] == 0, results[SECOND]);

	/* A caller that is aborted while its run is in progress, and after it: below main(). */
	begin(FIRST, once, 5, -1);
	k_msleep(30);
	kill(FIRST);
	recovers("run after an aborted caller");
	begin(FIRST, once, K_LOWEST_APPLICATION_THREAD_PRIO, -1);
	k_msleep(30);
	k_busy_wait(500000); /* the run ends, and its caller has no time to take the result */
	kill(FIRST);
	recovers("run after an aborted caller with a result");
}

void test_runner(void)
{
	permit(NULL, 0);
	run_user("runner without permission", once, -1, true);
	permit(permitted, ARRAY_SIZE(permitted));
	run_user("user thread runs a model with devices", all_images, 0, false);
	for (int i = 0; i < (int)ARRAY_SIZE(forged); i++) {
		run_user(forged[i].name, forge, i, true);
	}
	run_user("array of pointers in memory of the kernel", forge_array, 0, true);
	run_user("status in memory of the kernel", forge_status, 0, true);
	run_user("workspace of the runner", write_workspace, 0, true);
	recovers("run after forged arguments");
	test_time();
	test_callers();
}
