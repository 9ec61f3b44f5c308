/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cases from standard input, one a line:
 *
 *     model ending null masks faults (position code)...
 *
 * `ending` is the action after a failed run with an open workspace: c closes it with further faults,
 * r runs it again without them, s with them. `null` is a member of the context that is NULL. Every mask has a bit per
 * hook of a device. Writes the result of every call and all calls that it made in turn.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/port.h>

#include "journal.h"

enum {
	HAS_ACTIVATE = 1,
	HAS_OPEN = 2,
	HAS_CLOSE = 4,
	HAS_DEACTIVATE = 8,
	HAS_SYNC = 16,
};

static struct {
	int position;
	int code;
} faults[8];
static int fault_count, next_position;
static bool faults_on;
static char text[8192];
static size_t text_size;

static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_size += (size_t)vsnprintf(text + text_size, sizeof(text) - text_size, format, args);
	va_end(args);
	if (text_size >= sizeof(text)) {
		abort();
	}
}

static void expect(bool holds, const char *what)
{
	if (!holds) {
		note(" VIOLATION(%s)", what);
	}
}

/* The result of the call that was just recorded. */
static int fault(void)
{
	const int position = next_position++;

	for (int i = 0; faults_on && i < fault_count; i++) {
		if (faults[i].position == position) {
			return faults[i].code;
		}
	}
	return 0;
}

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

static void compute(const struct job *job)
{
	for (int i = 0; i < ELEMENTS; i++) {
		job->y[i] = (int32_t)(3U * (uint32_t)job->a[i] +
				      5U * (uint32_t)job->b[(i + 1) % ELEMENTS] +
				      (uint32_t)job->step);
	}
}

static void drain(const struct device *dev)
{
	for (unsigned int i = 0; i < dev->data->job_count; i++) {
		compute(&dev->data->jobs[i]);
	}
	dev->data->job_count = 0;
}

static int hook_activate(const struct device *dev, const struct opwest_program *program)
{
	note(" A%u:%s", index_of(dev), program == NULL ? "-" : program->name);
	expect(dev->data->powered > dev->data->activations || dev->api->deactivate == NULL,
	       "activated without power");

	const int rc = fault();

	dev->data->activations += rc == 0;
	return rc;
}

static int hook_open(const struct device *dev, int32_t timeout_ms)
{
	note(" O%u:%ld", index_of(dev), (long)timeout_ms);
	expect(dev->api->activate == NULL || dev->data->activations > 0, "opened inactive");
	expect(dev->api->close == NULL || !dev->data->owned, "opened twice");

	const int rc = fault();

	dev->data->owned = rc == 0;
	return rc;
}

static int hook_close(const struct device *dev)
{
	note(" C%u", index_of(dev));
	expect(dev->api->open == NULL || dev->data->owned, "closed and not open");
	expect(dev->data->job_count == 0 || dev->data->timed_out, "closed before it was drained");
	dev->data->owned = false;
	dev->data->timed_out = false;
	dev->data->job_count = 0; /* aborted */
	return fault();
}

static int hook_deactivate(const struct device *dev)
{
	note(" D%u", index_of(dev));
	expect(dev->api->activate == NULL || dev->data->activations > 0, "deactivated twice");
	expect(dev->api->close == NULL || !dev->data->owned, "deactivated while open");
	expect(dev->data->job_count == 0 || dev->data->timed_out, "deactivated before it was drained");
	dev->data->activations -= dev->data->activations > 0;
	dev->data->timed_out = false;
	dev->data->job_count = 0;
	return fault();
}

static int hook_sync(const struct device *dev, int32_t timeout_ms)
{
	note(" S%u:%ld", index_of(dev), (long)timeout_ms);
	expect(dev->api->open == NULL || dev->data->owned, "synced and not open");

	const int rc = fault();

	if (rc != -ETIMEDOUT) {
		drain(dev);
	}
	dev->data->timed_out = rc == -ETIMEDOUT;
	return rc;
}

/* ---- the port ---- */

bool opwest_port_device_is_ready(const struct device *dev)
{
	if (dev == NULL) {
		note(" Rnull");
		return false;
	}
	note(" R%u", index_of(dev));
	return fault() == 0;
}

bool opwest_port_device_has_hooks(const struct device *dev)
{
	note(" H%u", index_of(dev));
	return fault() == 0;
}

int opwest_port_device_power(const struct device *dev, bool on)
{
	note(" P%u%c", index_of(dev), on ? '+' : '-');

	const int rc = fault();

	expect(on || dev->data->powered > 0, "powered down twice");
	if (!on) {
		dev->data->powered--;
	} else if (rc == 0) {
		dev->data->powered++;
	}
	return rc;
}

static int maintain(const char *what, const uint8_t *data, uint32_t size)
{
	note(" %s:%u", what, (unsigned int)size);
	expect((uintptr_t)data % 64 == 0 && size % 64 == 0, "not whole lines");
	return fault();
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
	expect(model != NULL, "log without a name");
	expect(code != 0, "log without a failure");
}

void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	(void)code;
	expect(model != NULL && device != NULL && hook != NULL, "log without a name");
}

/* ---- functions for operators ---- */

int32_t journal_step(int32_t step, const struct device *dev);
int32_t journal_step(int32_t step, const struct device *dev)
{
	note(" op%ld", (long)step);
	if (dev != NULL) {
		note("@%u", index_of(dev));
		expect(dev->api->open == NULL || dev->api->close == NULL || dev->data->owned,
		       "step without owning the device");
	}
	return fault();
}

void journal_compute(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		     const struct device *dev);
void journal_compute(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		     const struct device *dev)
{
	const struct job job = {step, a, b, y};

	if (dev != NULL) {
		drain(dev);
	}
	compute(&job);
}

void journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		    const struct device *dev);
void journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		    const struct device *dev)
{
	const struct job job = {step, a, b, y};

	if (dev->api->sync == NULL) {
		compute(&job); /* a driver with synchronous operators */
		return;
	}
	memset(y, 0x5A, ELEMENTS * sizeof(y[0]));
	if (dev->data->job_count == sizeof(dev->data->jobs) / sizeof(dev->data->jobs[0])) {
		abort();
	}
	dev->data->jobs[dev->data->job_count++] = job;
}

/* ---- cases ---- */

static void say(const struct subject *subject, const char *what, int rc)
{
	const struct opwest_status *const status = subject->status;

	printf("%s %d (%ld %u %u %u) %s%s:%s\n", what, rc, (long)status->code, status->step,
	       status->hook, status->device,
	       subject->state != NULL && *subject->opened ? subject->state() : "",
	       *subject->opened ? "opened" : "closed", text);
	text_size = 0;
	text[0] = '\0';
}

static bool say_run(const struct subject *subject)
{
	const int rc = subject->run();

	say(subject, rc != 0 ? "run" : subject->right() ? "run, right" : "run, wrong", rc);
	return rc == 0;
}

static void leaks(void)
{
	for (unsigned int i = 0; i < HANDLES; i++) {
		const struct opwest_host_data *const state = &states[i];
		const bool counts = apis[i].activate != NULL && apis[i].deactivate != NULL;

		expect(!counts || state->activations == 0, "active at the end");
		expect(state->powered == 0, "powered at the end");
		expect(apis[i].close == NULL || !state->owned, "open at the end");
	}
}

static void play(const struct subject *subject, char ending)
{
	int rc;

	faults_on = true;
	rc = subject->open();
	say(subject, "open", rc);
	if (rc == 0) {
		const bool good = say_run(subject);

		if (!good && !*subject->opened) {
			leaks(); /* after a timeout everything is already released */
			(void)say_run(subject);
			rc = subject->close();
			say(subject, "close", rc);
		} else {
			if (!good && ending != 'c') {
				faults_on = ending == 's';
				(void)say_run(subject);
			}
			rc = subject->close();
			leaks();
			say(subject, "close", rc);
		}
	} else {
		leaks();
	}
	faults_on = false;
	rc = subject->open();
	say(subject, "open", rc);
	(void)say_run(subject);
	rc = subject->close();
	leaks();
	say(subject, "close", rc);
}

int main(void)
{
	char name[64];
	char ending;
	int null;
	unsigned int masks[HANDLES];

	while (scanf("%63s %c %d %x %x %x %d", name, &ending, &null, &masks[0], &masks[1], &masks[2],
		     &fault_count) == 7) {
		const struct subject *subject = NULL;

		for (int i = 0; subjects[i] != NULL; i++) {
			if (strcmp(subjects[i]->name, name) == 0) {
				subject = subjects[i];
			}
		}
		if (subject == NULL || fault_count > 8) {
			return 2;
		}
		for (int i = 0; i < fault_count; i++) {
			if (scanf("%d %d", &faults[i].position, &faults[i].code) != 2) {
				return 2;
			}
		}
		for (int i = 0; i < HANDLES; i++) {
			const unsigned int has = masks[i];

			memset(&states[i], 0, sizeof(states[i]));
			apis[i] = (struct opwest_accelerator_driver_api){
				.activate = (has & HAS_ACTIVATE) != 0 ? hook_activate : NULL,
				.open = (has & HAS_OPEN) != 0 ? hook_open : NULL,
				.close = (has & HAS_CLOSE) != 0 ? hook_close : NULL,
				.deactivate = (has & HAS_DEACTIVATE) != 0 ? hook_deactivate : NULL,
				.sync = (has & HAS_SYNC) != 0 ? hook_sync : NULL,
			};
		}
		if (null >= 0) {
			int rc;

			subject->context(null);
			rc = subject->open();
			say(subject, "null", rc);
		}
		subject->context(-1);
		next_position = 0;
		play(subject, ending);
		puts(".");
	}
	return 0;
}
