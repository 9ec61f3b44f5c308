/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue and its thread. The vendor's driver runs one inference at a time; the thread starts the
 * next one, so the NPU continues while its owner computes.
 *
 * The thread does not block in ethosu_wait(), which cannot end early, but takes the semaphore that
 * the vendor's interrupt handler gives. An abort gives it as well. No member of the vendor's
 * structure is written: the functions used are those of its header.
 */
#include <errno.h>

#include <zephyr/irq.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/barrier.h>
#include <zephyr/sys/util.h>

#include "ethos_u_internal.h"

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

#define ALIGNMENT 16U

/* The base pointer of Vela's fast scratch memory. */
#define FAST_REGION 2U

/* Starts the first job of the queue. Called with the lock. */
static int start(const struct device *dev)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;
	const struct ethos_u_job *const job = &config->queue[data->first];

	for (uint32_t i = 0; i < job->inference.count; i++) {
		data->base[i] = (uintptr_t)job->inference.regions[i].data;
		data->base_size[i] = job->inference.regions[i].size;
	}
	ethos_u_pmu_begin(data);
	if (ethosu_invoke_async(data->driver, job->program->data, (int)job->program->size,
				data->base, data->base_size, (int)job->inference.count,
				NULL) != 0) {
		ethos_u_pmu_end(data);
		return -EIO;
	}
	return 0;
}

int ethos_u_kill(const struct device *dev)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethosu_driver *const driver = ((struct ethos_u_data *)dev->data)->driver;

	irq_disable(config->irq);
	if (ethosu_soft_reset(driver) != 0) {
		return -EIO;
	}
	/* A pending interrupt runs the vendor's handler here: the inference has ended then. */
	irq_enable(config->irq);
	barrier_dsync_fence_full();
	barrier_isync_fence_full();
	if (ethosu_wait(driver, false) == 1) {
		(void)ethosu_semaphore_give(driver->semaphore);
		(void)ethosu_wait(driver, true);
	}
	return 0;
}

/* Ends the running job. The semaphore was taken once: given by the interrupt, or by an abort. */
static int finish(const struct device *dev, const struct ethos_u_job *job)
{
	struct ethos_u_data *const data = dev->data;

	ethos_u_pmu_end(data);
	if (data->stopping) {
		LOG_WRN("%s: inference aborted", dev->name);
		data->stuck = ethos_u_kill(dev) != 0;
		return -ECANCELED;
	}
	(void)ethosu_semaphore_give(data->driver->semaphore);
	if (ethosu_wait(data->driver, true) != 0) {
		return -EIO;
	}
	ethos_u_pmu_record(data, job);
	return 0;
}

/* Runs the first job of the queue, or skips it. Called with the lock. */
static int run(const struct device *dev)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;
	int rc;

	if (data->skipped > 0U) {
		data->skipped--;
		return -ECANCELED;
	}
	rc = start(dev);
	if (rc == 0) {
		data->running = true;
		k_mutex_unlock(&data->lock);
		(void)ethosu_semaphore_take(data->driver->semaphore, ETHOSU_SEMAPHORE_WAIT_FOREVER);
		(void)k_mutex_lock(&data->lock, K_FOREVER);
		rc = finish(dev, &config->queue[data->first]);
		data->running = false;
		data->stopping = false;
	}
	if (rc != 0) {
		data->failed = true;
		data->skipped = (uint16_t)(data->count - 1U);
	}
	return rc;
}

void ethos_u_work(void *p1, void *p2, void *p3)
{
	const struct device *const device = p1;
	const struct ethos_u_config *const config = device->config;
	struct ethos_u_data *const data = device->data;

	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	for (;;) {
		while (data->count == 0U) {
			(void)k_condvar_wait(&data->filled, &data->lock, K_FOREVER);
		}

		const int rc = run(device);

		data->first = (uint16_t)((data->first + 1U) % config->queue_depth);
		data->count--;
		opwest_accelerator_context_end(&data->context, device, rc);
		(void)k_condvar_broadcast(&data->removed);
	}
}

/* Called with the lock: waits until fewer than `count` jobs are in the queue. */
static bool wait_until_below(struct ethos_u_data *data, uint32_t count, int32_t timeout_ms)
{
	const k_timepoint_t end =
		sys_timepoint_calc(timeout_ms < 0 ? K_FOREVER : K_MSEC(timeout_ms));
	int rc = 0;

	while (data->count >= count && rc == 0) {
		rc = k_condvar_wait(&data->removed, &data->lock, sys_timepoint_timeout(end));
	}
	return data->count < count;
}

int ethos_u_abort(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	data->skipped = (uint16_t)(data->count - (data->running ? 1U : 0U));
	if (data->running && !data->stopping) {
		data->stopping = true;
		(void)ethosu_semaphore_give(data->driver->semaphore);
	}
	(void)wait_until_below(data, 1U, OPWEST_FOREVER);
	data->failed = false;
	return data->stuck ? -EIO : 0;
}

int ethos_u_returned(struct ethos_u_data *data, int rc)
{
	/* The other results are of the wait, not of a job. */
	if (rc == -EIO || rc == -ECANCELED) {
		(void)k_mutex_lock(&data->lock, K_FOREVER);
		data->failed = false;
		k_mutex_unlock(&data->lock);
	}
	return rc;
}

/* Checks the regions of a copied inference, and puts the fast memory into it. */
static int prepare(const struct ethos_u_config *config, struct opwest_ethos_u_inference *inference)
{
	if (inference->count > OPWEST_ETHOS_U_REGIONS) {
		return -EINVAL;
	}
	for (uint32_t i = 0; i < inference->count; i++) {
		struct opwest_ethos_u_region *const region = &inference->regions[i];

		if (!IS_ALIGNED(region->data, ALIGNMENT)) {
			return -EINVAL;
		}
		if (region->data == NULL && region->size != 0U) {
			if (i != FAST_REGION) {
				return -EINVAL;
			}
			if (region->size > config->fast_memory_size) {
				return -ENOMEM;
			}
			region->data = (const uint8_t *)config->fast_memory;
		}
	}
	return 0;
}

/* Called with the lock. */
static int append(const struct device *dev, const struct ethos_u_job *job)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;
	int rc;

	if (!data->owned) {
		return -EPERM;
	}
	/* The current program was checked. */
	if (job->program == NULL || !opwest_program_equal(job->program, data->program)) {
		return -EINVAL;
	}
	if (!wait_until_below(data, config->queue_depth, config->queue_timeout_ms)) {
		return -EAGAIN;
	}
	if (!data->owned) {
		return -EPERM;
	}
	rc = opwest_accelerator_context_begin(&data->context);
	if (rc != 0) {
		return rc;
	}
	config->queue[(data->first + data->count) % config->queue_depth] = *job;
	data->count++;
	data->skipped += data->failed ? 1U : 0U;
	(void)k_condvar_signal(&data->filled);
	return 0;
}

int opwest_ethos_u_enqueue(const struct opwest_launch *launch,
			   const struct opwest_ethos_u_inference *inference)
{
	struct ethos_u_data *const data = launch->dev->data;
	struct ethos_u_job job = {
		.program = launch->program,
		.inference = *inference,
		.step = launch->step,
	};
	int rc = prepare(launch->dev->config, &job.inference);

	if (rc != 0) {
		return rc;
	}
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	rc = append(launch->dev, &job);
	k_mutex_unlock(&data->lock);
	return rc;
}

int opwest_ethos_u_run(const struct opwest_launch *launch,
		       const struct opwest_ethos_u_inference *inference)
{
	struct ethos_u_data *const data = launch->dev->data;
	const int rc = opwest_ethos_u_enqueue(launch, inference);

	if (rc != 0) {
		return rc;
	}
	return ethos_u_returned(
		data, opwest_accelerator_context_drain(&data->context, launch->timeout_ms));
}
