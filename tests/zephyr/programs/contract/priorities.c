/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits for the owner of a device raises its priority. The time-outs for an owner and
 * for work differ.
 */
#include <hasty.h>
#include <one.h>
#include <patient.h>
#include <worker.h>

#include "contract.h"

#define LOW 10
#define MEDIUM 8
#define HIGH 6
#define SPIN_MS 200

USE_MODEL(hasty, HASTY)
USE_MODEL(one, ONE)
USE_MODEL(patient, PATIENT)
USE_MODEL(worker, WORKER)

static const struct device *const npu = NPU(npu_slow);

static int64_t began;
static int64_t low_end, medium_end, high_end;
static int low_rc, high_rc;

/* Owns the device during a step of the processor. */
static void low(void)
{
	low_rc = worker_once(1);
	low_end = now_us() - began;
}

static void medium(void)
{
	k_busy_wait(SPIN_MS * 1000);
	medium_end = now_us() - began;
}

static void high(void)
{
	high_rc = one_once(1);
	high_end = now_us() - began;
}

/* The same without a wait, so that the priority of the owner stays low. */
static void high_that_polls(void)
{
	do {
		high_rc = hasty_once(1);
		if (high_rc == -EBUSY) {
			(void)k_msleep(1);
		}
	} while (high_rc == -EBUSY);
	high_end = now_us() - began;
}

static void scene(void (*entry)(void))
{
	began = now_us();
	start_helper(HELPER_A, LOW, 0, low);
	start_helper(HELPER_B, MEDIUM, 5, medium);
	start_helper(HELPER_C, HIGH, 10, entry);
	join_helper(HELPER_A);
	join_helper(HELPER_B);
	join_helper(HELPER_C);
	printf("low ended after %d us, medium after %d us, high after %d us\n", (int)low_end,
	       (int)medium_end, (int)high_end);
	check("priority", "run of the low thread", low_rc, 0);
	check("priority", "run of the high thread", high_rc, 0);
}

static void inheritance(void)
{
	check("priority", "open", worker_begin(npu) | one_begin(npu) | hasty_begin(npu), 0);
	scene(high);
	/* The owner's job, step and job of 10, 20 and 10 ms, the own job of 10 ms, and ticks. */
	check_range("priority", "high with inheritance, us", high_end, 50000, 60000);
	check("priority", "before the medium thread", high_end < medium_end, true);
	scene(high_that_polls);
	check_range("priority", "high without inheritance, us", high_end, SPIN_MS * 1000, 300000);
	check("priority", "close", worker_end() | one_end() | hasty_end(), 0);
}

static void own_for_a_while(void)
{
	(void)opwest_accelerator_open(npu, OPWEST_FOREVER);
	(void)k_msleep(100);
	(void)opwest_accelerator_close(npu);
}

static void timeouts(void)
{
	int64_t start;

	check("time-outs", "open", patient_begin(npu), 0);
	start_helper(HELPER_A, LOW, 0, own_for_a_while);
	(void)k_msleep(5);
	start = now_us();
	check("time-outs", "another owner", patient_once(1), -EBUSY);
	check_range("time-outs", "its limit of 35 ms, us", now_us() - start, 35000, 37000);
	check("time-outs", "hook", patient_workspace.status.hook, OPWEST_HOOK_OPEN);
	check("time-outs", "the workspace stays open", patient_workspace.opened, true);
	join_helper(HELPER_A);
	check("time-outs", "next run", patient_once(1), 0);

	opwest_npu_emul_hang(npu, 0);
	start = now_us();
	check("time-outs", "work", patient_once(1), -ETIMEDOUT);
	/* The failed wait, and the wait of the clean-up. */
	check_range("time-outs", "its limit of 60 ms, us", now_us() - start, 60000, 62000);
	check("time-outs", "hook", patient_workspace.status.hook, OPWEST_HOOK_SYNC);
	check("time-outs", "the workspace is closed", patient_workspace.opened, false);
	check("time-outs", "open again", patient_begin(npu), 0);
	check("time-outs", "run again", patient_once(1), 0);
	check("time-outs", "close", patient_end(), 0);
}

void priorities(void)
{
	inheritance();
	timeouts();
}
