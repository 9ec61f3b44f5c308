/* SPDX-License-Identifier: Apache-2.0 */
/* The queue and its thread. Semaphores only wake threads, which test the state under the lock. */
#include <errno.h>
#include <string.h>

#include "npu_emul_internal.h"

/* The content of outputs until their job is done. */
#define GARBAGE 0x5a

/* A job that has left the queue. */
struct turn {
	struct opwest_npu_emul_job job;
	struct opwest_npu_emul_fault fault;
};

static bool is_idle(const struct opwest_npu_emul_data *data)
{
	return !data->running && data->count == 0;
}

static int wait_idle(const struct device *dev, int64_t deadline, int *first_error)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	for (int rc = 0;;) {
		bool idle;

		opwest_port_mutex_lock(&data->lock);
		idle = is_idle(data);
		if (idle && first_error != NULL) {
			*first_error = data->first_error;
			data->first_error = 0;
		}
		opwest_port_mutex_unlock(&data->lock);
		if (idle) {
			/* For another waiting thread. */
			opwest_port_sem_give(&data->idle);
			return 0;
		}
		if (rc != 0) {
			return rc;
		}
		rc = opwest_port_sem_take_until(&data->idle, deadline);
	}
}

int opwest_npu_emul_wait(const struct device *dev, int32_t timeout_ms)
{
	int first_error = 0;
	const int rc = wait_idle(dev, opwest_port_deadline(timeout_ms), &first_error);

	return rc != 0 ? rc : first_error;
}

void opwest_npu_emul_abort(const struct device *dev)
{
	struct opwest_npu_emul_data *const data = npu_emul_data(dev);

	opwest_port_mutex_lock(&data->lock);
	data->counts.aborted += data->count;
	data->count = 0;
	data->aborting = data->running;
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->wake);
	opwest_port_sem_give(&data->room);
	(void)wait_idle(dev, OPWEST_PORT_NEVER, NULL);
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
			return -EBUSY;
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
		const uint32_t tail = ((uint32_t)data->head + data->count) % config->queue_depth;

		config->queue[tail] = *job;
		data->count++;
	}
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->work);
	/* For another waiting thread: one signal wakes only one thread. */
	opwest_port_sem_give(&data->room);
	return rc;
}

static bool next(const struct device *dev, struct turn *turn)
{
	const struct opwest_npu_emul_config *const config = npu_emul_config(dev);
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
	turn->job = config->queue[data->head];
	turn->fault = opwest_npu_emul_due(data, OPWEST_NPU_EMUL_JOB);
	data->head = (uint16_t)((data->head + 1U) % config->queue_depth);
	data->count--;
	data->running = true;
	opwest_port_mutex_unlock(&data->lock);
	opwest_port_sem_give(&data->room);
	return true;
}

static bool is_aborting(struct opwest_npu_emul_data *data)
{
	bool aborting;

	opwest_port_mutex_lock(&data->lock);
	aborting = data->aborting;
	opwest_port_mutex_unlock(&data->lock);
	return aborting;
}

/* Sleeps until the deadline, or until the job must end. */
static int pass_time(struct opwest_npu_emul_data *data, int64_t until)
{
	for (int rc = 0; rc == 0;) {
		if (is_aborting(data)) {
			return -ECANCELED;
		}
		rc = opwest_port_sem_take_until(&data->wake, until);
	}
	return is_aborting(data) ? -ECANCELED : 0;
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
	} else if (data->first_error == 0) {
		data->first_error = rc;
	}
	data->running = false;
	data->aborting = false;
	idle = is_idle(data);
	opwest_port_mutex_unlock(&data->lock);
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
