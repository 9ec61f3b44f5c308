/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel() from an ISR, the end of work as an event of k_poll(), and the time-outs for an owner and
 * for work, which differ.
 */
#include <one.h>
#include <patient.h>
#include <worker.h>

#include <opwest/device_calls.h>

#include "contract.h"

USE_MODEL(one, ONE)
USE_MODEL(patient, PATIENT)
USE_MODEL(worker, WORKER)

static const struct device *const npu = NPU(npu_slow);

static bool was_in_isr;

static void cancel_one(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	was_in_isr = k_is_in_isr();
	(void)one_cancel(&one_workspace);
}
static K_TIMER_DEFINE(one_timer, cancel_one, NULL);

static void cancel_worker(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	was_in_isr = k_is_in_isr();
	(void)worker_cancel(&worker_workspace);
}
static K_TIMER_DEFINE(worker_timer, cancel_worker, NULL);

/* Starts the time of a case, at a tick. */
static int64_t start(struct k_timer *timer, int32_t ms)
{
	(void)k_sleep(K_TICKS(1));
	was_in_isr = false;
	opwest_npu_emul_reset(npu);
	k_timer_start(timer, K_MSEC(ms), K_NO_WAIT);
	return now_us();
}

static void check_cancelled(const char *area, int rc, const struct opwest_status *status,
			    int64_t us, int64_t least, int64_t most)
{
	const struct opwest_npu_emul_counts counts = counts_of(npu);

	check(area, "returns", rc, -ECANCELED);
	check_range(area, "after us", us, least, most);
	check(area, "cancelled by an ISR", was_in_isr, true);
	check(area, "status", status->code, -ECANCELED);
	check(area, "hook", status->hook, OPWEST_HOOK_CANCEL);
	check(area, "owners", counts.succeeded[OPWEST_NPU_EMUL_OPEN],
	      counts.succeeded[OPWEST_NPU_EMUL_CLOSE]);
}

static void check_next(const char *area)
{
	check(area, "next run", one_once(3), 0);
	check(area, "its result", equals(one_result, 3, one_of), true);
	check(area, "run of the other model", worker_once(1), 0);
}

static void during_work(void)
{
	int64_t began = start(&one_timer, 4);
	int rc = one_once(1);

	check_cancelled("cancel of a wait", rc, &one_workspace.status, now_us() - began, 4000,
			6000);
	check("cancel of a wait", "aborted jobs", counts_of(npu).aborted, 1);
	check_next("cancel of a wait");

	began = start(&one_timer, 4);
	opwest_npu_emul_hang(npu, 0);
	rc = one_once(1);
	check_cancelled("cancel of a hang", rc, &one_workspace.status, now_us() - began, 4000,
			6000);
	check("cancel of a hang", "open", one_workspace.opened, true);
	check_next("cancel of a hang");
}

static void during_a_step(void)
{
	const int64_t began = start(&worker_timer, 14);
	const int rc = worker_once(1);

	/* At the end of the step, which begins after the job of 10 ms and takes 20 ms. */
	check_cancelled("cancel of a step", rc, &worker_workspace.status, now_us() - began, 30000,
			32000);
	check("cancel of a step", "launches", counts_of(npu).succeeded[OPWEST_NPU_EMUL_ENQUEUE], 1);
	check_next("cancel of a step");
}

static void during_a_wait_for_an_owner(void)
{
	int64_t began;
	int rc;

	start_helper(HELPER_A, 5, 0, own_for_a_while);
	(void)k_msleep(5);
	began = start(&one_timer, 14);
	rc = one_once(1);
	/* Within 10 ms, and a tick. */
	check_cancelled("cancel of a wait for an owner", rc, &one_workspace.status,
			now_us() - began, 14000, 14000 + 10000 + 2000);
	join_helper(HELPER_A);
	check_next("cancel of a wait for an owner");
}

static void without_a_run(void)
{
	check("cancel without a run", "returns", one_cancel(&one_workspace), 0);
	check("cancel of no workspace", "returns", one_cancel(NULL), -EINVAL);
	check_next("cancel without a run");
}

void cancels(void)
{
	check("cancel", "open", one_begin(npu) | worker_begin(npu), 0);
	during_work();
	during_a_step();
	during_a_wait_for_an_owner();
	without_a_run();
	check("cancel", "close", one_end() | worker_end(), 0);
}

static int callbacks;

static void raise_signal(const struct device *dev, void *user)
{
	callbacks += dev == npu ? 1 : 100;
	(void)k_poll_signal_raise(user, callbacks);
}

static int launch(const struct opwest_call_device *device)
{
	const struct opwest_value args[] = {
		opwest_in(OPWEST_INT8, one_workspace.input.x, COUNT),
		opwest_out(OPWEST_INT8, one_workspace.output.y, COUNT),
	};

	return opwest_launch(opwest_find(&one_registry, "scale"), args, 2, device);
}

void notifications(void)
{
	const char *const area = "notify";
	const struct opwest_call_device device =
		one_call_device(&one_workspace, ONE_DEVICE_NPU_INDEX);
	struct k_poll_signal signal;
	struct k_poll_event event = K_POLL_EVENT_INITIALIZER(K_POLL_TYPE_SIGNAL,
							     K_POLL_MODE_NOTIFY_ONLY, &signal);
	int64_t began;

	k_poll_signal_init(&signal);
	check(area, "open", one_begin(npu), 0);
	check(area, "own", opwest_own(&device), 0);
	check(area, "set", opwest_accelerator_notify(npu, raise_signal, &signal), 0);
	(void)k_sleep(K_TICKS(1));
	began = now_us();
	check(area, "launch", launch(&device), 0);
	check(area, "no event yet", k_poll(&event, 1, K_MSEC(5)), -EAGAIN);
	check(area, "event", k_poll(&event, 1, K_SECONDS(1)), 0);
	check_range(area, "after the job of 10 ms, us", now_us() - began, 10000, 12000);
	check(area, "value", signal.result, 1);
	check(area, "nothing to wait for", opwest_wait(&device), 0);
	check(area, "release", opwest_release(&device), 0);
	check(area, "close", one_end(), 0);
}

void timeouts(void)
{
	int64_t start;

	check("time-outs", "open", patient_begin(npu), 0);
	start_helper(HELPER_A, 10, 0, own_for_a_while);
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
