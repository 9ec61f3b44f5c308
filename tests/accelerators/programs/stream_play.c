/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_play MODEL MODE FRAMES SEED DELAY DEPTH ROOM SWITCHING [FLAGS]: prints the digest of every
 * frame and of the final state. MODE is run, or stream. The last line counts the overlap: the
 * actions that the younger frame had performed when the older one ended.
 *
 * A device runs the operators on a thread, after random delays. An operator mixes the bytes of its
 * arguments, its step, and the program of its device.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opwest/accelerator_context.h>

#include "stream_play.h"

#define MAX_PARTS 8
#define QUEUE      256

/* How the drivers behave: set before a model is opened. */
static struct {
	/* The longest delay of a job, microseconds. */
	uint32_t delay_us;
	/* The unfinished jobs that a device accepts, which its info reports; 0: no limit. */
	uint16_t depth;
	/* The same, but the info does not report it. */
	uint16_t room;
	/* enum opwest_switching */
	uint8_t switching;
	/* Letters: b a launch without room blocks, instead of -EAGAIN; drivers without the hooks
	 * u enqueued(), s notify(), d wake().
	 */
	const char *flags;
} options;

/* What has happened in all devices. */
static struct {
	uint32_t jobs;
	uint32_t loads;
	uint32_t full;
} counts;

struct job {
	struct part parts[MAX_PARTS];
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
		if (parts[i].passed) {
			value = mixed(value, parts[i].value);
		}
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
	info->queue_depth = options.depth;
	info->switching = options.switching;
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
	if (options.switching != OPWEST_SWITCH_FREE && dev->data->put != dev->data->ended) {
		abort(); /* a load during work */
	}
	dev->data->program = program;
	counts.loads++;
	pthread_mutex_unlock(&dev->data->lock);
	return 0;
}

static int device_load(const struct device *dev, const struct opwest_program *program)
{
	return opwest_accelerator_context_load(
		&dev->data->context, dev, program,
		(enum opwest_switching)options.switching, device_set);
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
	{"d0", NULL, &api, &data[0]}, {"d1", NULL, &api, &data[1]}, {"d2", NULL, &api, &data[2]}};

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
			options.switching == OPWEST_SWITCH_FREE ? job->launch.program : own->program;

		own->random = mixed(own->random, job->step);
		const uint32_t delay = own->random % (options.delay_us + 1U);

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

static bool has_no(char hook)
{
	return strchr(options.flags, hook) != NULL;
}

static void start_devices(void)
{
	api = (struct opwest_accelerator_driver_api){
		.info = device_info,
		.activate = device_activate,
		.open = device_open,
		.load = device_load,
		.enqueued = has_no('u') ? NULL : device_enqueued,
		.sync = device_sync,
		.wake = has_no('d') ? NULL : device_wake,
		.notify = has_no('s') ? NULL : device_notify,
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

static void stop_devices(void)
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
	const uint32_t depth = options.depth;
	const uint32_t room = options.room;
	struct job *job;

	pthread_mutex_lock(&own->lock);
	while (room > 0U && own->put - own->ended >= room) {
		counts.full++;
		if (strchr(options.flags, 'b') == NULL) {
			pthread_mutex_unlock(&own->lock);
			return -EAGAIN;
		}
		pthread_cond_wait(&own->changed, &own->lock);
	}
	if (count > MAX_PARTS || own->put - own->ended >= (depth > 0U ? depth : QUEUE)) {
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
	counts.jobs++;
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

/* ---- frames ---- */

static uint32_t seed;

static uint32_t drawn(uint32_t limit)
{
	seed = seed * 1664525U + 1013904223U;
	return (seed >> 8) % limit;
}

void fill_input(uint8_t *data, uint32_t size, uint32_t frame, uint32_t number)
{
	uint32_t value = frame * 2654435761U + number * 40503U;

	for (uint32_t i = 0; i < size; i++) {
		value = value * 1664525U + 1013904223U;
		data[i] = (uint8_t)(value >> 24);
	}
}

void add_to_digest(uint32_t *digest, const uint8_t *data, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		*digest = (*digest ^ data[i]) * 16777619U;
	}
}

static void stop(const char *what, uint32_t frame, int rc)
{
	printf("%s of frame %u returned %d\n", what, frame, rc);
	exit(1);
}

static void run_all(const struct player *player, uint32_t frames)
{
	for (uint32_t frame = 0; frame < frames; frame++) {
		uint32_t digest = 0;
		const int rc = player->run(frame, &digest);

		if (rc != 0) {
			stop("run", frame, rc);
		}
		printf("%u: %08x\n", frame, digest);
	}
}

/* The actions that the younger frame has performed. */
static uint32_t ahead(const struct opwest_stream *stream)
{
	return stream->count < 2U ? 0U : stream->frames[(stream->first + 1U) % 2U].at;
}

/* Returns the overlap. */
static uint32_t stream_all(const struct player *player, uint32_t frames)
{
	uint32_t submitted = 0;
	uint32_t overlap = 0;

	for (uint32_t ended = 0; ended < frames;) {
		const bool pauses = drawn(8) == 0U; /* ends all frames: the devices are released */
		uint32_t digest = 0;
		int rc = 0;

		while (submitted < frames && rc == 0 && !(pauses && submitted > ended)) {
			rc = player->submit(submitted);
			submitted += rc == 0;
		}
		if (rc != 0 && rc != -EAGAIN) {
			stop("submit", submitted, rc);
		}
		do {
			static const int32_t limits[] = {0, 0, 1, 20, OPWEST_FOREVER};
			const uint32_t at = ahead(player->stream);

			rc = player->poll(limits[drawn(5)], ended, &digest);
			overlap += rc == 0 ? at : 0U;
		} while (rc == -EAGAIN);
		if (rc != 0) {
			stop("poll", ended, rc);
		}
		printf("%u: %08x\n", ended++, digest);
		if (drawn(4) == 0U) {
			opwest_port_sleep_us(drawn(300));
		}
	}
	if (player->poll(0, 0, &(uint32_t){0}) != -ENOENT) {
		stop("an additional poll", frames, 0);
	}
	return overlap;
}

int main(int argc, char **argv)
{
	const struct player *player = NULL;
	uint32_t overlap = 0;
	bool streams;
	int rc;

	for (uint32_t i = 0; i < player_count && argc > 8; i++) {
		if (strcmp(all_players[i]->name, argv[1]) == 0) {
			player = all_players[i];
		}
	}
	if (player == NULL) {
		return 2;
	}
	alarm(100);
	streams = strcmp(argv[2], "stream") == 0;
	seed = (uint32_t)atoi(argv[4]);
	options.delay_us = (uint32_t)atoi(argv[5]);
	options.depth = (uint16_t)atoi(argv[6]);
	options.room = (uint16_t)atoi(argv[7]);
	options.switching = (uint8_t)atoi(argv[8]);
	options.flags = argc > 9 ? argv[9] : "";
	start_devices();
	rc = player->open(streams);
	if (rc != 0) {
		stop("open", 0, rc);
	}
	if (streams) {
		overlap = stream_all(player, (uint32_t)atoi(argv[3]));
	} else {
		run_all(player, (uint32_t)atoi(argv[3]));
	}
	printf("state %08x\n", player->state(streams));
	rc = player->close(streams);
	if (rc != 0) {
		stop("close", 0, rc);
	}
	stop_devices();
	printf("overlap %u jobs %u loads %u full %u\n", overlap, counts.jobs, counts.loads,
	       counts.full);
	return 0;
}
