/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/atomic.h>
#include <zephyr/sys/iterable_sections.h>

#include <opwest/errors.h>

#include "service_internal.h"

/* One job at a time: the holder of the mutex owns it. */
static K_MUTEX_DEFINE(mutex);
static K_THREAD_STACK_DEFINE(stack, CONFIG_OPWEST_SERVICE_STACK_SIZE);
static struct k_work_q queue;

static struct {
	struct k_work work;
	const struct opwest_served_model *served;
	enum opwest_service_action action;
	int result;
	uint64_t nanoseconds;
#ifdef CONFIG_OPWEST_SERVICE_CALL
	uint32_t operator_index;
	uint32_t device;
#endif
} job;

#ifdef CONFIG_OPWEST_CHECK_STEPS
/* A run that stops: the service's thread waits for resume, the host's for halt. */
static K_SEM_DEFINE(resume, 0, 1);
static K_SEM_DEFINE(halt, 0, 1);
static struct {
	/* The model of the stopped run, or NULL. */
	const struct opwest_served_model *served;
	/* The point after which to stop; 0 for none. */
	uint32_t point;
	bool stopped;
} steps;
#endif

#ifdef CONFIG_OPWEST_SERVICE_LOCKED
static atomic_t is_permitted = ATOMIC_INIT(0);

void opwest_service_permit(bool permitted)
{
	(void)atomic_set(&is_permitted, permitted ? 1 : 0);
}

bool opwest_service_is_permitted(void)
{
	return atomic_get(&is_permitted) != 0;
}
#endif

void opwest_service_lock(void)
{
	(void)k_mutex_lock(&mutex, K_FOREVER);
}

void opwest_service_unlock(void)
{
	(void)k_mutex_unlock(&mutex);
}

const struct opwest_served_model *opwest_service_model(uint32_t index)
{
	const struct opwest_served_model *served;

	if (index >= opwest_service_model_count()) {
		return NULL;
	}
	STRUCT_SECTION_GET(opwest_served_model, index, &served);
	return served;
}

uint32_t opwest_service_model_count(void)
{
	uint32_t count;

	STRUCT_SECTION_COUNT(opwest_served_model, &count);
	return count;
}

/* The cycle counter has a higher resolution than the ticks, but with 32 bits it wraps soon. */
static uint64_t elapsed(uint32_t cycles, int64_t ticks)
{
	const uint64_t half = k_cyc_to_ns_floor64(UINT32_MAX / 2U);
	const uint64_t coarse = k_ticks_to_ns_floor64((uint64_t)ticks);

	return coarse < half ? k_cyc_to_ns_floor64(cycles) : coarse;
}

static void work(struct k_work *item)
{
	const struct opwest_served_model *served = job.served;
	const int64_t ticks = k_uptime_ticks();
	const uint32_t cycles = k_cycle_get_32();

	ARG_UNUSED(item);

	switch (job.action) {
	case OPWEST_SERVICE_OPEN:
		job.result = opwest_service_open(served);
		break;
	case OPWEST_SERVICE_RUN:
		job.result = served->run();
		break;
#ifdef CONFIG_OPWEST_SERVICE_CALL
	case OPWEST_SERVICE_CALL:
		job.result = opwest_service_call(served, job.operator_index, job.device);
		break;
#endif
	default:
		job.result = served->close();
		break;
	}
	job.nanoseconds = elapsed(k_cycle_get_32() - cycles, k_uptime_ticks() - ticks);
#ifdef CONFIG_OPWEST_CHECK_STEPS
	if (steps.served != NULL) {
		k_sem_give(&halt);
	}
#endif
}

#ifdef CONFIG_OPWEST_CHECK_STEPS
void opwest_profile_stop(const struct opwest_measure *measures, uint32_t index)
{
	if (steps.served == NULL || steps.served->profile->measures != measures ||
	    steps.point == 0U || steps.point != index) {
		return;
	}
	steps.stopped = true;
	k_sem_give(&halt);
	(void)k_sem_take(&resume, K_FOREVER);
}

/* Continue the stopped run up to its end or the next stop. */
static void continue_until(uint32_t point)
{
	steps.point = point;
	steps.stopped = false;
	k_sem_give(&resume);
	(void)k_sem_take(&halt, K_FOREVER);
	if (!steps.stopped) {
		steps.served = NULL;
	}
}
#endif

static const char *text_or_none(const char *text)
{
	return text != NULL ? text : "";
}

static void report_job(struct opwest_service_report *report)
{
	const struct opwest_model *model = job.served->model;
	const struct opwest_status *status = job.served->status;

	*report = (struct opwest_service_report){
		.result = job.result,
		.error = opwest_error_name(job.result),
		.hook = "",
		.device = "",
		.operator_name = "",
		.step = -1,
		.nanoseconds = job.nanoseconds,
	};
	if (job.result == 0 || status->code == 0) {
		return;
	}
	report->code = status->code;
	if (status->hook != OPWEST_HOOK_OPERATOR) {
		report->hook = text_or_none(opwest_hook_name(status->hook));
	}
	if (status->device < model->device_count) {
		report->device = model->devices[status->device].name;
	}
	if (status->step != OPWEST_NO_STEP) {
		report->operator_name = text_or_none(opwest_model_step_name(model, status->step));
		report->step = status->step;
	}
}

static void submit(const struct opwest_served_model *served, enum opwest_service_action action)
{
	job.served = served;
	job.action = action;
	(void)k_work_submit_to_queue(&queue, &job.work);
}

void opwest_service_do(const struct opwest_served_model *served, enum opwest_service_action action,
		       struct opwest_service_report *report)
{
	struct k_work_sync sync;

#ifdef CONFIG_OPWEST_CHECK_STEPS
	if (steps.served != NULL) {
		continue_until(0U);
		(void)k_work_flush(&job.work, &sync);
	}
#endif
	submit(served, action);
	(void)k_work_flush(&job.work, &sync);
	report_job(report);
}

#ifdef CONFIG_OPWEST_CHECK_STEPS
void opwest_service_run_until(const struct opwest_served_model *served, uint32_t point,
			      struct opwest_service_report *report)
{
	struct k_work_sync sync;

	if (steps.served != NULL && steps.served != served) {
		continue_until(0U);
		(void)k_work_flush(&job.work, &sync);
	}
	if (steps.served == NULL) {
		steps.served = served;
		steps.point = point;
		steps.stopped = false;
		submit(served, OPWEST_SERVICE_RUN);
		(void)k_sem_take(&halt, K_FOREVER);
		if (!steps.stopped) {
			steps.served = NULL;
		}
	} else {
		continue_until(point);
	}
	if (steps.served == NULL) {
		(void)k_work_flush(&job.work, &sync);
		report_job(report);
		return;
	}
	*report = (struct opwest_service_report){
		.error = "",
		.hook = "",
		.device = "",
		.operator_name = "",
		.step = -1,
		.stopped = true,
	};
}
#endif

#ifdef CONFIG_OPWEST_SERVICE_CALL
void opwest_service_do_call(const struct opwest_served_model *served, uint32_t index,
			    uint32_t device, struct opwest_service_report *report)
{
	job.operator_index = index;
	job.device = device;
	opwest_service_do(served, OPWEST_SERVICE_CALL, report);
}
#endif

bool opwest_service_stack(uint32_t *used, uint32_t *size)
{
#if defined(CONFIG_INIT_STACKS) && defined(CONFIG_THREAD_STACK_INFO) && !defined(CONFIG_ARCH_POSIX)
	const struct k_thread *const thread = k_work_queue_thread_get(&queue);
	size_t unused;

	if (k_thread_stack_space_get(thread, &unused) != 0) {
		return false;
	}
	*size = (uint32_t)thread->stack_info.size;
	*used = *size - (uint32_t)unused;
	return true;
#else
	ARG_UNUSED(used);
	ARG_UNUSED(size);
	return false;
#endif
}

/* Cooperative: the time of other threads does not count as the model's time. */
static int start(void)
{
	static const struct k_work_queue_config config = {.name = "opwest"};

	k_work_queue_init(&queue);
	k_work_init(&job.work, work);
	k_work_queue_start(&queue, stack, K_THREAD_STACK_SIZEOF(stack),
			   K_PRIO_COOP(CONFIG_NUM_COOP_PRIORITIES - 1), &config);
	return 0;
}

SYS_INIT(start, APPLICATION, CONFIG_APPLICATION_INIT_PRIORITY);
