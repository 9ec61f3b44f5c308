/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/accelerator_context.h>

#include "stream_device.h"

#define MOST_PARTS 8
#define QUEUE      256

struct job {
	struct part parts[MOST_PARTS];
	struct opwest_launch launch;
	uint32_t count;
	uint32_t step;
};

struct opwest_host_data {
	struct opwest_accelerator_context context;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct job queue[QUEUE];
	/* The program that the device has loaded. */
	const struct opwest_program *program;
	/* Jobs: put, taken by the thread, ended. */
	uint32_t put;
	uint32_t taken;
	uint32_t ended;
	uint32_t random;
	bool stops;
};

#define DATA                                                                                       \
	{.context = OPWEST_ACCELERATOR_CONTEXT_HOST_INITIALIZER,                                   \
	 .lock = PTHREAD_MUTEX_INITIALIZER,                                                        \
	 .changed = PTHREAD_COND_INITIALIZER}

struct stream_device_options stream_device_options;
struct stream_device_counts stream_device_counts;

static struct opwest_host_data data[STREAM_DEVICES] = {DATA, DATA, DATA};
static struct opwest_accelerator_driver_api api;

static uint32_t mixed(uint32_t value, uint32_t with)
{
	value ^= with + 0x9e3779b9U + (value << 6) + (value >> 2);
	return value * 2654435761U;
}

static uint32_t program_of(const struct opwest_program *program)
{
	uint32_t value = 17U;

	for (uint32_t i = 0; program != NULL && i < program->size; i++) {
		value = mixed(value, program->data[i]);
	}
	return value;
}

static void compute(uint32_t step, const struct part *parts, uint32_t count, uint32_t program)
{
	uint32_t value = mixed(program, step);

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t at = 0; parts[i].in != NULL && at < parts[i].size; at++) {
			value = mixed(value, parts[i].in[at]);
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t at = 0; parts[i].out != NULL && at < parts[i].size; at++) {
			value = mixed(value, at);
			parts[i].out[at] = (uint8_t)(value >> 24);
		}
	}
}

int32_t stream_compute(uint32_t step, const struct part *parts, uint32_t count,
		       const struct opwest_launch *launch)
{
	compute(step, parts, count, program_of(launch == NULL ? NULL : launch->program));
	return 0;
}

static uint32_t kept;

uint32_t stream_next(uint32_t step)
{
	return mixed(kept, step);
}

void stream_keep(uint32_t state)
{
	kept = state;
}

static int device_info(const struct device *dev, struct opwest_accelerator_info *info)
{
	(void)dev;
	info->queue_depth = stream_device_options.depth;
	info->switching = stream_device_options.switching;
	return 0;
}

static int device_activate(const struct device *dev)
{
	return opwest_accelerator_context_activate(&dev->data->context, dev, NULL);
}

static int device_open(const struct device *dev, int32_t timeout_ms)
{
	return opwest_accelerator_context_open(&dev->data->context, timeout_ms);
}

static int device_set(const struct device *dev, const struct opwest_program *program)
{
	pthread_mutex_lock(&dev->data->lock);
	if (stream_device_options.switching != OPWEST_SWITCH_FREE &&
	    dev->data->put != dev->data->ended) {
		abort(); /* a load during work */
	}
	dev->data->program = program;
	stream_device_counts.loads++;
	pthread_mutex_unlock(&dev->data->lock);
	return 0;
}

static int device_load(const struct device *dev, const struct opwest_program *program)
{
	return opwest_accelerator_context_load(
		&dev->data->context, dev, program,
		(enum opwest_switching)stream_device_options.switching, device_set);
}

static uint32_t device_enqueued(const struct device *dev)
{
	return opwest_accelerator_context_enqueued(&dev->data->context);
}

static int device_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	return opwest_accelerator_context_sync(&dev->data->context, leave, timeout_ms);
}

static void device_wake(const struct device *dev)
{
	opwest_accelerator_context_wake(&dev->data->context);
}

static int device_notify(const struct device *dev, opwest_accelerator_callback_t callback,
			 void *user)
{
	return opwest_accelerator_context_notify(&dev->data->context, callback, user);
}

static int device_close(const struct device *dev)
{
	(void)opwest_accelerator_context_drain(&dev->data->context, OPWEST_FOREVER);
	return opwest_accelerator_context_close(&dev->data->context);
}

static int device_deactivate(const struct device *dev)
{
	return opwest_accelerator_context_deactivate(&dev->data->context, dev, NULL);
}

const struct device stream_devices[STREAM_DEVICES] = {
	{"d0", NULL, &api, &data[0]},
	{"d1", NULL, &api, &data[1]},
	{"d2", NULL, &api, &data[2]},
};

static void *work(void *argument)
{
	const struct device *const dev = argument;
	struct opwest_host_data *const own = dev->data;

	pthread_mutex_lock(&own->lock);
	while (!own->stops) {
		if (own->taken == own->put) {
			pthread_cond_wait(&own->changed, &own->lock);
			continue;
		}
		const struct job *const job = &own->queue[own->taken++ % QUEUE];
		const struct opwest_program *const program =
			stream_device_options.switching == OPWEST_SWITCH_FREE ? job->launch.program
									      : own->program;

		own->random = mixed(own->random, job->step);
		const uint32_t delay = stream_device_options.delay_us == 0U
					       ? 0U
					       : own->random % stream_device_options.delay_us;

		pthread_mutex_unlock(&own->lock);
		if (delay > 0U) {
			opwest_port_sleep_us(delay);
		}
		compute(job->step, job->parts, job->count, program_of(program));
		pthread_mutex_lock(&own->lock);
		own->ended++;
		pthread_cond_broadcast(&own->changed);
		pthread_mutex_unlock(&own->lock);
		opwest_accelerator_context_end(&own->context, dev, 0);
		pthread_mutex_lock(&own->lock);
	}
	pthread_mutex_unlock(&own->lock);
	return NULL;
}

void stream_devices_start(void)
{
	api = (struct opwest_accelerator_driver_api){
		.info = device_info,
		.activate = device_activate,
		.open = device_open,
		.load = device_load,
		.enqueued = stream_device_options.uncounted ? NULL : device_enqueued,
		.sync = device_sync,
		.wake = stream_device_options.deaf ? NULL : device_wake,
		.notify = stream_device_options.silent ? NULL : device_notify,
		.close = device_close,
		.deactivate = device_deactivate,
	};
	for (int i = 0; i < STREAM_DEVICES; i++) {
		data[i].random = (uint32_t)i;
		if (pthread_create(&data[i].thread, NULL, work, (void *)&stream_devices[i]) != 0) {
			abort();
		}
	}
}

void stream_devices_stop(void)
{
	for (int i = 0; i < STREAM_DEVICES; i++) {
		pthread_mutex_lock(&data[i].lock);
		data[i].stops = true;
		pthread_cond_broadcast(&data[i].changed);
		pthread_mutex_unlock(&data[i].lock);
		pthread_join(data[i].thread, NULL);
	}
}

/* Two unfinished launches never have the same slot. */
static void check_slot(const struct opwest_host_data *own, const struct opwest_launch *launch,
		       uint32_t depth)
{
	for (uint32_t i = own->ended; depth > 0U && i != own->put; i++) {
		if (own->queue[i % QUEUE].launch.slot == launch->slot || launch->slot >= depth) {
			abort();
		}
	}
}

int32_t stream_launch(uint32_t step, const struct part *parts, uint32_t count,
		      const struct opwest_launch *launch)
{
	struct opwest_host_data *const own = launch->dev->data;
	const uint32_t depth = stream_device_options.depth;
	const uint32_t room = stream_device_options.room;
	struct job *job;

	pthread_mutex_lock(&own->lock);
	while (room > 0U && own->put - own->ended >= room) {
		stream_device_counts.full++;
		if (!stream_device_options.blocks) {
			pthread_mutex_unlock(&own->lock);
			return -EAGAIN;
		}
		pthread_cond_wait(&own->changed, &own->lock);
	}
	if (count > MOST_PARTS || own->put - own->ended >= (depth > 0U ? depth : QUEUE)) {
		abort(); /* too many launches */
	}
	check_slot(own, launch, depth);
	pthread_mutex_unlock(&own->lock);
	if (opwest_accelerator_context_begin(&own->context) != 0) {
		abort(); /* no owner */
	}
	pthread_mutex_lock(&own->lock);
	job = &own->queue[own->put++ % QUEUE];
	memcpy(job->parts, parts, count * sizeof(*parts));
	job->launch = *launch;
	job->count = count;
	job->step = step;
	stream_device_counts.jobs++;
	pthread_cond_broadcast(&own->changed);
	pthread_mutex_unlock(&own->lock);
	return 0;
}

int32_t stream_call(uint32_t step, const struct part *parts, uint32_t count,
		    const struct opwest_launch *launch)
{
	const int32_t rc = stream_launch(step, parts, count, launch);

	return rc != 0 ? rc
		       : opwest_accelerator_context_drain(&launch->dev->data->context,
							  launch->timeout_ms);
}
