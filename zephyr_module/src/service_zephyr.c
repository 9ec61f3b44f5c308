/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/iterable_sections.h>

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
} job;

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
	default:
		job.result = served->close();
		break;
	}
	job.nanoseconds = elapsed(k_cycle_get_32() - cycles, k_uptime_ticks() - ticks);
}

static const char *text_or_none(const char *text)
{
	return text != NULL ? text : "";
}

void opwest_service_do(const struct opwest_served_model *served, enum opwest_service_action action,
		       struct opwest_service_report *report)
{
	const struct opwest_model *model = served->model;
	const struct opwest_status *status = served->status;
	struct k_work_sync sync;

	job.served = served;
	job.action = action;
	(void)k_work_submit_to_queue(&queue, &job.work);
	(void)k_work_flush(&job.work, &sync);

	*report = (struct opwest_service_report){
		.result = job.result,
		.error = opwest_service_error_name(job.result),
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
