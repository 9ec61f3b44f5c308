/* SPDX-License-Identifier: Apache-2.0 */
/* The driver, the port and the functions for operators of journal.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/port.h>

#include "journal.h"

/* ---- the devices ---- */

static struct opwest_accelerator_driver_api apis[HANDLES];
static struct opwest_host_data states[HANDLES];
static const struct opwest_host_config configs[HANDLES] = {{0}, {1}, {2}};
const struct device handles[HANDLES] = {
	{"h0", &configs[0], &apis[0], &states[0]},
	{"h1", &configs[1], &apis[1], &states[1]},
	{"h2", &configs[2], &apis[2], &states[2]},
};

static unsigned int index_of(const struct device *dev)
{
	return dev->config->index;
}

static void expect_owned(const struct device *dev, const char *what)
{
	journal_expect(dev->api->open == NULL || dev->api->close == NULL || dev->data->owned, what);
}

/* A stream may abort its jobs. */
static void expect_drained(const struct device *dev, const char *what)
{
	journal_expect(dev->data->job_count == 0 || dev->data->timed_out || journal.cancelled ||
		       journal.pace != 0, what);
}

static void compute(const struct job *job)
{
	for (int i = 0; i < ELEMENTS; i++) {
		job->y[i] = (int32_t)(3U * (uint32_t)job->a[i] +
				      5U * (uint32_t)job->b[(i + 1) % ELEMENTS] +
				      (uint32_t)job->step);
	}
}

/* Ends the first jobs, so that the last `leave` are unfinished. */
static void drain(const struct device *dev, uint32_t leave)
{
	struct opwest_host_data *const data = dev->data;

	while (data->job_count > leave) {
		compute(&data->jobs[0]);
		data->job_count--;
		memmove(&data->jobs[0], &data->jobs[1], data->job_count * sizeof(data->jobs[0]));
	}
}

static const char *name_of(const struct opwest_program *program)
{
	return program == NULL ? "-" : program->name;
}

static int hook_info(const struct device *dev, struct opwest_accelerator_info *info)
{
	journal_note(" I%u", index_of(dev));
	info->queue_depth = (uint16_t)journal.properties[index_of(dev)].depth;
	info->switching = (uint8_t)journal.properties[index_of(dev)].switching;
	return journal_fault();
}

static int hook_check(const struct device *dev, const struct opwest_program *program)
{
	journal_note(" K%u:%s", index_of(dev), name_of(program));
	journal_expect(dev->api->activate == NULL || dev->data->activations > 0, "checked inactive");
	return journal_fault();
}

static int hook_load(const struct device *dev, const struct opwest_program *program)
{
	journal_note(" L%u:%s", index_of(dev), name_of(program));
	expect_owned(dev, "loaded without owning the device");
	journal_expect(journal.properties[index_of(dev)].switching == OPWEST_SWITCH_FREE ||
		       dev->data->job_count == 0 || dev->api->info == NULL ||
		       (dev->api->close == NULL && dev->api->deactivate == NULL),
	       "loaded during work");

	const int rc = journal_fault();

	dev->data->program = rc == 0 ? program : NULL;
	dev->data->loaded = rc == 0;
	return journal_done(dev, rc);
}

static uint32_t hook_enqueued(const struct device *dev)
{
	expect_owned(dev, "counted without owning the device");
	return dev->data->enqueued;
}

static void hook_wake(const struct device *dev)
{
	journal_note(" W%u", index_of(dev));
	dev->data->woken = true;
}

static int hook_notify(const struct device *dev, opwest_accelerator_callback_t callback, void *user)
{
	(void)callback;
	(void)user;
	journal_note(" N%u", index_of(dev));
	journal_expect(journal.pace != 0, "a run set a callback");
	return 0;
}

static int hook_activate(const struct device *dev)
{
	journal_note(" A%u", index_of(dev));
	journal_expect(dev->data->powered > dev->data->activations || dev->api->deactivate == NULL,
	       "activated without power");

	const int rc = journal_fault();

	dev->data->activations += rc == 0;
	return journal_done(dev, rc);
}

static int hook_open(const struct device *dev, int32_t timeout_ms)
{
	journal_note(" O%u:%ld", index_of(dev), (long)timeout_ms);
	journal_expect(dev->api->activate == NULL || dev->data->activations > 0, "opened inactive");
	journal_expect(dev->api->close == NULL || !dev->data->owned, "opened twice");

	const int rc = journal_fault();

	dev->data->owned = rc == 0;
	dev->data->enqueued = 0;
	return journal_done(dev, rc);
}

static int hook_close(const struct device *dev)
{
	journal_note(" C%u", index_of(dev));
	journal_expect(dev->api->open == NULL || dev->data->owned, "closed and not open");
	expect_drained(dev, "closed before it was drained");
	dev->data->owned = false;
	dev->data->timed_out = false;
	dev->data->job_count = 0; /* aborted */
	return journal_done(dev, journal_fault());
}

static int hook_deactivate(const struct device *dev)
{
	journal_note(" D%u", index_of(dev));
	journal_expect(dev->api->activate == NULL || dev->data->activations > 0, "deactivated twice");
	journal_expect(dev->api->close == NULL || !dev->data->owned, "deactivated while open");
	expect_drained(dev, "deactivated before it was drained");
	dev->data->activations -= dev->data->activations > 0;
	dev->data->timed_out = false;
	dev->data->job_count = 0;
	return journal_done(dev, journal_fault());
}

static int hook_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	struct opwest_host_data *const data = dev->data;

	journal_note(" S%u:%lu:%ld", index_of(dev), (unsigned long)leave, (long)timeout_ms);
	journal_expect(dev->api->open == NULL || data->owned, "synced and not open");

	int rc = journal_fault();

	if (rc == 0 && data->woken && data->job_count > leave) {
		data->woken = false;
		rc = -EINTR;
	}
	if (rc == 0 && timeout_ms == 0 && data->job_count > leave && journal.pace != 0) {
		drain(dev, data->job_count - (++data->asked % journal.pace == 0));
		rc = data->job_count > leave ? -EAGAIN : 0;
	}
	if (rc == -ETIMEDOUT && timeout_ms > 0) {
		journal.now += timeout_ms;
	}
	if (rc != -ETIMEDOUT && rc != -EINTR && rc != -EAGAIN) {
		drain(dev, leave);
	}
	data->timed_out = rc == -ETIMEDOUT || rc == -EAGAIN;
	return journal_done(dev, rc);
}

/* ---- the port ---- */

bool opwest_port_device_is_ready(const struct device *dev)
{
	if (dev == NULL) {
		journal_note(" Rnull");
		return false;
	}
	journal_note(" R%u", index_of(dev));
	return journal_fault() == 0;
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
	journal_note(" H%u", index_of(dev));
	return journal_fault() == 0;
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	journal_note(" P%u%c", index_of(dev), on ? '+' : '-');

	const int rc = journal_fault();

	journal_expect(on || dev->data->powered > 0, "powered down twice");
	if (!on) {
		dev->data->powered--;
	} else if (rc == 0) {
		dev->data->powered++;
	}
	return rc;
}

int64_t opwest_port_uptime_ms(void)
{
	return journal.now;
}

/* One thread. */
uintptr_t opwest_port_thread(void)
{
	return 1U;
}

static int maintain(const char *what, const uint8_t *data, uint32_t size)
{
	journal_note(" %s:%u", what, (unsigned int)size);
	journal_expect((uintptr_t)data % 64 == 0 && size % 64 == 0, "not whole lines");
	return journal_fault();
}

/* Not used: no operator is called by name. */
uint32_t opwest_port_cache_line(void)
{
	return 0U;
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	return maintain("flush", data, size);
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	return maintain("clean", data, size);
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	return maintain("drop", data, size);
}

bool opwest_port_take(opwest_port_flag_t *flag)
{
	const bool taken = *flag == 0; /* one thread */

	*flag = 1;
	return taken;
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	*flag = 0;
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
	(void)step;
	journal_expect(model != NULL, "log without a name");
	journal_expect(code != 0, "log without a failure");
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	(void)code;
	journal_expect(model != NULL && device != NULL && hook != NULL, "log without a name");
}

/* ---- functions for operators ---- */

int32_t journal_step(int32_t step, const struct device *dev)
{
	journal_note(" op%ld", (long)step);
	if (dev != NULL) {
		journal_note("@%u", index_of(dev));
		expect_owned(dev, "step without owning the device");
	}
	return journal_done(dev, journal_fault());
}

void journal_compute(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		     const struct device *dev)
{
	const struct job job = {step, 0U, a, b, y};

	if (dev != NULL) {
		drain(dev, 0U);
	}
	compute(&job);
}

int32_t journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		       const struct opwest_launch *launch)
{
	const struct job job = {step, launch->slot, a, b, y};
	const struct device *const dev = launch->dev;
	const unsigned int index = index_of(dev);
	const unsigned int hidden = journal.properties[index].hidden;
	const unsigned int depth = dev->api->info == NULL ? 0U : journal.properties[index].depth;

	journal_note(" op%ld@%u:%s:%ld", (long)step, index, name_of(launch->program),
	     (long)launch->timeout_ms);
	expect_owned(dev, "launch without owning the device");
	journal_expect(launch->step == step, "launch of another step");
	journal_expect(dev->api->load == NULL || launch->program == NULL ||
		       (dev->data->loaded && dev->data->program == launch->program),
	       "launch of another program");
	journal_expect(depth == 0 || (launch->slot < depth && dev->data->job_count < depth),
		       "launch beyond the queue");
	for (unsigned int i = 0; i < dev->data->job_count; i++) {
		journal_expect(depth == 0 || dev->data->jobs[i].slot != launch->slot,
			       "two jobs with one slot");
	}

	const int32_t rc = journal_done(dev, journal_fault());

	if (rc != 0) {
		return rc;
	}
	if (hidden != 0 && dev->data->job_count >= hidden) {
		return -EAGAIN;
	}
	dev->data->enqueued++;
	if (dev->api->sync == NULL) {
		compute(&job); /* a driver with synchronous operators */
		return 0;
	}
	memset(y, 0x5A, ELEMENTS * sizeof(y[0]));
	if (dev->data->job_count == sizeof(dev->data->jobs) / sizeof(dev->data->jobs[0])) {
		abort();
	}
	dev->data->jobs[dev->data->job_count++] = job;
	return 0;
}

/* Resets a device, whose driver has the hooks of a mask: the lowest bit is of the first one. */
void journal_reset(unsigned int index, unsigned int mask)
{
#define IF_SET(bit, hook) ((mask & (1U << (bit))) != 0U ? (hook) : NULL)
	memset(&states[index], 0, sizeof(states[index]));
	apis[index] = (struct opwest_accelerator_driver_api){
		.activate = IF_SET(0, hook_activate),
		.open = IF_SET(1, hook_open),
		.close = IF_SET(2, hook_close),
		.deactivate = IF_SET(3, hook_deactivate),
		.sync = IF_SET(4, hook_sync),
		.info = IF_SET(5, hook_info),
		.check = IF_SET(6, hook_check),
		.load = IF_SET(7, hook_load),
		.enqueued = IF_SET(8, hook_enqueued),
		.wake = IF_SET(9, hook_wake),
		.notify = IF_SET(10, hook_notify),
	};
}

/* Notes what is not undone. */
void journal_leaks(void)
{
	for (unsigned int i = 0; i < HANDLES; i++) {
		const struct opwest_host_data *const state = &states[i];
		const bool counts = apis[i].activate != NULL && apis[i].deactivate != NULL;

		journal_expect(!counts || state->activations == 0, "active at the end");
		journal_expect(state->powered == 0, "powered at the end");
		journal_expect(apis[i].close == NULL || !state->owned, "open at the end");
	}
}
