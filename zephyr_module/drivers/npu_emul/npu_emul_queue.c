/* SPDX-License-Identifier: Apache-2.0 */
/* The queue and its thread. Semaphores only wake threads, which test the state under the lock. */
#include <errno.h>
#include <string.h>

#include "npu_emul_internal.h"

/* The content of outputs until their job is done. */
#define GARBAGE 0x5a

/* A job that has started. */
struct turn {
	struct opwest_npu_emul_job job;
	struct opwest_npu_emul_fault fault;
};

static void wait_idle(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	bool idle = false;

	while (!idle) {
		opwest_port_mutex_lock(&data->lock);
		idle = data->count == 0;
		opwest_port_mutex_unlock(&data->lock);
		if (!idle) {
			(void)opwest_port_sem_take_until(&data->idle, OPWEST_PORT_NEVER);
		}
	}
}

void opwest_npu_emul_abort(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	uint16_t waiting;

	opwest_port_mutex_lock(&data->lock);
	waiting = (uint16_t)(data->count - (data->running ? 1U : 0U));
	data->counts.aborted += waiting;
	data->count = (uint16_t)(data->count - waiting);
	data->aborting = data->running;
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->wake);
	opwest_port_sem_give(&data->room);
	wait_idle(dev);
	while (waiting-- > 0U) {
		opwest_accelerator_context_end(&data->context, dev, -ECANCELED);
	}
}

/* Called with the lock, which is released during the wait. */
static int wait_for_room(const struct device *dev)
{
	const struct opwest_npu_emul_config *const config = npu_emul_config(dev);
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	const int64_t deadline = opwest_port_deadline(config->queue_timeout_ms);

	for (int rc = 0;;) {
		if (!data->opened || data->program == NULL) {
			return -EPERM;
		}
		if (data->count < config->queue_depth) {
			return 0;
		}
		if (rc != 0) {
			return -EAGAIN;
		}
		opwest_port_mutex_unlock(&data->lock);
		rc = opwest_port_sem_take_until(&data->room, deadline);
		opwest_port_mutex_lock(&data->lock);
	}
}

int opwest_npu_emul_put(const struct device *dev, uint16_t id, struct opwest_npu_emul_job *job)
{
	const struct opwest_npu_emul_config *const config = npu_emul_config(dev);
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	int rc;

	opwest_port_mutex_lock(&data->lock);
	rc = wait_for_room(dev);
	if (rc == 0) {
		rc = opwest_npu_emul_find(data->program, job->kind, id, &job->kernel);
	}
	if (rc == 0) {
		rc = opwest_accelerator_context_begin(&data->context);
	}
	if (rc == 0) {
		const uint32_t tail = ((uint32_t)data->head + data->count) % config->queue_depth;

		config->queue[tail] = *job;
		data->count++;
		if (data->count > data->counts.most) {
			data->counts.most = data->count;
		}
	}
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->work);
	/* For another waiting thread: one signal wakes only one thread. */
	opwest_port_sem_give(&data->room);
	return rc;
}

static bool next(const struct device *dev, struct turn *turn)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	while (data->count == 0) {
		const bool stopping = data->stopping;

		opwest_port_mutex_unlock(&data->lock);
		if (stopping) {
			return false;
		}
		(void)opwest_port_sem_take_until(&data->work, OPWEST_PORT_NEVER);
		opwest_port_mutex_lock(&data->lock);
	}
	turn->job = npu_emul_config(dev)->queue[data->head];
	turn->fault = opwest_npu_emul_due(data, OPWEST_NPU_EMUL_JOB);
	data->running = true;
	data->resuming = false;
	opwest_port_mutex_unlock(&data->lock);
	return true;
}

static bool is_set(struct opwest_npu_emul_data *data, const bool *flag)
{
	bool set;

	opwest_port_mutex_lock(&data->lock);
	set = *flag;
	opwest_port_mutex_unlock(&data->lock);
	return set;
}

/* Sleeps until the deadline, or until the job must end. */
static int pass_time(struct opwest_npu_emul_data *data, int64_t until)
{
	for (int rc = 0; rc == 0;) {
		if (is_set(data, &data->aborting)) {
			return -ECANCELED;
		}
		if (until == OPWEST_PORT_NEVER && is_set(data, &data->resuming)) {
			return 0;
		}
		rc = opwest_port_sem_take_until(&data->wake, until);
	}
	return is_set(data, &data->aborting) ? -ECANCELED : 0;
}

static int run(const struct device *dev, const struct turn *turn)
{
	const struct opwest_npu_emul_job *const job = &turn->job;
	const int64_t end = opwest_port_clock_us() + npu_emul_config(dev)->latency_us;
	int rc;

	if (job->y != job->x && job->y != job->w) {
		memset(job->y, GARBAGE, job->y_size);
	}
	rc = pass_time(npu_emul_data(dev), turn->fault.hangs ? OPWEST_PORT_NEVER : end);
	if (rc == 0 && turn->fault.armed) {
		rc = turn->fault.error;
	}
	if (rc == 0) {
		opwest_npu_emul_compute(job);
	}
	return rc;
}

static void finish(const struct device *dev, int rc)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);
	bool idle;

	opwest_port_mutex_lock(&data->lock);
	if (rc == 0) {
		data->counts.succeeded[OPWEST_NPU_EMUL_JOB]++;
	} else if (data->aborting) {
		data->counts.aborted++;
	}
	data->running = false;
	data->aborting = false;
	data->head = (uint16_t)((data->head + 1U) % npu_emul_config(dev)->queue_depth);
	data->count--;
	idle = data->count == 0;
	/* Before the lock is released: jobs end in the order of their counts. */
	opwest_accelerator_context_end(&data->context, dev, rc);
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->room);
	if (idle) {
		opwest_port_sem_give(&data->idle);
	}
}

void opwest_npu_emul_work(const struct device *dev)
{
	struct turn turn;

	while (next(dev, &turn)) {
		finish(dev, run(dev, &turn));
	}
}
