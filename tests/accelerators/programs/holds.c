/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which runs acquire devices. Reads cases from standard input:
 *
 *     order MEMBERS (handle first last)...         writes the acquiring step of every handle, -1 for none
 *     race RUNS two models, each as MEMBERS (handle first last)...
 *                                                  runs both in a thread each; writes their results
 *
 * A member is used from step `first` to before step `last`. Handles are addresses in ascending order.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include <opwest/accelerator_context.h>

#include "devices_internal.h"

#define HANDLES 4
#define MEMBERS 6
#define STEPS 16
/* Milliseconds: far more than all runs of a pair take. */
#ifndef DEADLOCK_MS
#define DEADLOCK_MS 20000
#endif
/* Of each step, so that two threads surely meet; 0: only yield. */
#ifndef STEP_MS
#define STEP_MS 0
#endif

struct opwest_host_data {
	struct opwest_accelerator_context context;
	/* Protected only by ownership. */
	unsigned long owners;
};

static int hold_activate(const struct device *dev)
{
	return opwest_accelerator_context_activate(&dev->data->context, dev, NULL);
}

static int hold_open(const struct device *dev, int32_t timeout_ms)
{
	return opwest_accelerator_context_open(&dev->data->context, timeout_ms);
}

static int hold_close(const struct device *dev)
{
	return opwest_accelerator_context_close(&dev->data->context);
}

static int hold_deactivate(const struct device *dev)
{
	return opwest_accelerator_context_deactivate(&dev->data->context, dev, NULL);
}

static OPWEST_ACCELERATOR_API(hold_api) = {
	.activate = hold_activate,
	.open = hold_open,
	.close = hold_close,
	.deactivate = hold_deactivate,
};
static struct opwest_host_data data[HANDLES];
static const struct device handles[HANDLES] = {
	{"h0", NULL, &hold_api, &data[0]},
	{"h1", NULL, &hold_api, &data[1]},
	{"h2", NULL, &hold_api, &data[2]},
	{"h3", NULL, &hold_api, &data[3]},
};

struct model {
	struct opwest_device devices[MEMBERS];
	struct opwest_device_set set;
	struct opwest_slot slots[MEMBERS];
	struct opwest_status status;
	unsigned int handle[MEMBERS];
	int runs;
	int rc;
	/** The number of begun runs. */
	atomic_int begun;
	struct model *other;
};

static void read_model(struct model *model)
{
	unsigned int count;

	if (scanf("%u", &count) != 1 || count > MEMBERS) {
		exit(2);
	}
	memset(model, 0, sizeof(*model));
	for (unsigned int i = 0; i < count; i++) {
		unsigned int first, last;

		if (scanf("%u %u %u", &model->handle[i], &first, &last) != 3 ||
		    model->handle[i] >= HANDLES || last > STEPS) {
			exit(2);
		}
		model->devices[i] = (struct opwest_device){
			.name = handles[model->handle[i]].name,
			.timeout_ms = DEADLOCK_MS,
			.own_timeout_ms = DEADLOCK_MS,
			.first_step = (uint16_t)first,
			.last_step = (uint16_t)last,
			.flags = OPWEST_DEVICE_HOOKS,
		};
		model->slots[i] = (struct opwest_slot)OPWEST_SLOT_INIT;
		model->slots[i].dev = &handles[model->handle[i]];
	}
	model->set = (struct opwest_device_set){
		.model = "holds", .devices = model->devices, .count = count};
}

static void show_order(void)
{
	struct model model;
	int acquired[HANDLES] = {-1, -1, -1, -1};

	read_model(&model);
	opwest_devices_order(&model.set, model.slots);
	for (uint32_t i = 0; i < model.set.count; i++) {
		if (model.slots[i].leader == i) {
			acquired[model.handle[i]] = model.slots[i].acquired;
		}
	}
	for (int i = 0; i < HANDLES; i++) {
		printf("%d%c", acquired[i], i == HANDLES - 1 ? '\n' : ' ');
	}
}

/* As emitted code: before each step, release what it does not need, and acquire what it does. */
static int run(struct model *model)
{
	const struct opwest_device_set *const set = &model->set;

	opwest_devices_begin(set, model->slots);
	for (uint16_t step = 0; step <= STEPS; step++) {
		int rc = 0;

		for (uint32_t i = 0; i < set->count && rc == 0; i++) {
			if (model->devices[i].last_step == step) {
				rc = opwest_devices_release(set, model->slots, &model->status, i);
			}
		}
		if (rc == 0) {
			rc = opwest_devices_acquire(set, model->slots, &model->status, step);
		}
		if (rc != 0) {
			(void)opwest_devices_abandon(set, model->slots);
			return rc;
		}
		for (uint32_t i = 0; i < set->count; i++) {
			if (model->devices[i].first_step <= step &&
			    step < model->devices[i].last_step) {
				data[model->handle[i]].owners++;
			}
		}
		if (STEP_MS == 0) {
			sched_yield();
		} else {
			(void)thrd_sleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
		}
	}
	return 0;
}

/* If steps take time, a run waits until the other model begins the same run or has ended. */
static void meet(struct model *model)
{
	atomic_store(&model->begun, model->runs + 1);
	while (STEP_MS != 0 && atomic_load(&model->other->begun) <= model->runs) {
		(void)thrd_sleep(&(struct timespec){.tv_nsec = 100000L}, NULL);
	}
}

/* A thread's function: POSIX passes data of any type. */
static void *repeat(void *argument)
{
	struct model *const model = argument;
	const int runs = model->runs;

	for (model->runs = 0; model->runs < runs && model->rc == 0; model->runs++) {
		meet(model);
		model->rc = run(model);
	}
	atomic_store(&model->begun, INT_MAX);
	return NULL;
}

static void race(void)
{
	struct model models[2];
	pthread_t threads[2];
	unsigned long expected = 0, owners = 0;
	int runs, closed = 0;

	if (scanf("%d", &runs) != 1) {
		exit(2);
	}
	memset(data, 0, sizeof(data));
	for (int i = 0; i < HANDLES; i++) {
		opwest_accelerator_context_init(&data[i].context);
	}
	for (int i = 0; i < 2; i++) {
		read_model(&models[i]);
		models[i].runs = runs;
		models[i].other = &models[1 - i];
		atomic_init(&models[i].begun, 0);
		models[i].rc = opwest_devices_activate(&models[i].set, models[i].slots,
						       &models[i].status);
		for (uint32_t k = 0; k < models[i].set.count; k++) {
			expected += (unsigned long)runs * (models[i].devices[k].last_step -
							   models[i].devices[k].first_step);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, repeat, &models[i]) != 0) {
			exit(3);
		}
	}
	for (int i = 0; i < 2; i++) {
		(void)pthread_join(threads[i], NULL);
		closed |= opwest_devices_deactivate(&models[i].set, models[i].slots,
						    &models[i].status);
	}
	for (int i = 0; i < HANDLES; i++) {
		owners += data[i].owners;
		closed |= data[i].context.activations != 0U || data[i].context.owned;
	}
	printf("%d %d, %d %d runs, %s, %s\n", models[0].rc, models[1].rc, models[0].runs,
	       models[1].runs, owners == expected ? "exclusive" : "shared",
	       closed == 0 ? "closed" : "not closed");
}

int main(void)
{
	char what[8];

	while (scanf("%7s", what) == 1) {
		if (strcmp(what, "order") == 0) {
			show_order();
		} else {
			race();
		}
		fflush(stdout);
	}
	return 0;
}
