/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cases from standard input, one a line:
 *
 *     model ending null cancel masks (depth switching hidden)... faults (position code repeats)...
 *
 * `ending` is the action after a failed run with an open workspace: c closes it with further faults,
 * r runs it again without them, s with them. `null` is a member of the context that is NULL. `cancel` is the position
 * of a call that cancels the run before it returns. Every mask has a bit per hook of a device; `depth` and `switching`
 * are those of info(), `hidden` is the number of jobs after which launches return -EAGAIN, 0 for none. The next
 * `repeats` calls of the same kind as a faulty one fail too. Writes the result of every call and all calls that it
 * made in turn.
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
	HAS_INFO = 32,
	HAS_CHECK = 64,
	HAS_LOAD = 128,
	HAS_ENQUEUED = 256,
	HAS_WAKE = 512,
};

static struct {
	unsigned int depth;
	unsigned int switching;
	unsigned int hidden;
} properties[HANDLES];

static struct {
	int position;
	int code;
	int repeats;
	/* The kind of the calls that fail after the first one. */
	char kind[24];
} faults[8];
static int fault_count, next_position, cancel_position;
static bool faults_on;
/* The run in progress is cancelled. */
static bool cancelled;
static int (*cancel)(void);
static int64_t now;
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

/* The kind of the call that was just recorded: its text before a colon. */
static void kind_of_call(char *kind, size_t size)
{
	const char *const last = strrchr(text, ' ') + 1;

	(void)snprintf(kind, size, "%.*s", (int)strcspn(last, ":"), last);
}

static int injected(int position)
{
	char kind[sizeof(faults[0].kind)];

	kind_of_call(kind, sizeof(kind));
	for (int i = 0; faults_on && i < fault_count; i++) {
		if (faults[i].position == position) {
			memcpy(faults[i].kind, kind, sizeof(kind));
			return faults[i].code;
		}
		if (faults[i].repeats != 0 && strcmp(faults[i].kind, kind) == 0) {
			faults[i].repeats -= faults[i].repeats > 0;
			return faults[i].code;
		}
	}
	return 0;
}

/* The result of the call that was just recorded. */
static int fault(void)
{
	const int position = next_position++;
	const int code = injected(position);

	if (position == cancel_position) {
		cancelled = true;
		expect(cancel() == 0, "not cancelled");
	}
	return code;
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
	note(" I%u", index_of(dev));
	info->queue_depth = (uint16_t)properties[index_of(dev)].depth;
	info->switching = (uint8_t)properties[index_of(dev)].switching;
	return fault();
}

static int hook_check(const struct device *dev, const struct opwest_program *program)
{
	note(" K%u:%s", index_of(dev), name_of(program));
	expect(dev->api->activate == NULL || dev->data->activations > 0, "checked inactive");
	return fault();
}

static int hook_load(const struct device *dev, const struct opwest_program *program)
{
	note(" L%u:%s", index_of(dev), name_of(program));
	expect(dev->api->open == NULL || dev->api->close == NULL || dev->data->owned,
	       "loaded without owning the device");
	expect(properties[index_of(dev)].switching == OPWEST_SWITCH_FREE ||
		       dev->data->job_count == 0 || dev->api->info == NULL ||
		       (dev->api->close == NULL && dev->api->deactivate == NULL),
	       "loaded during work");

	const int rc = fault();

	dev->data->program = rc == 0 ? program : NULL;
	dev->data->loaded = rc == 0;
	return rc;
}

static uint32_t hook_enqueued(const struct device *dev)
{
	expect(dev->api->open == NULL || dev->api->close == NULL || dev->data->owned,
	       "counted without owning the device");
	return dev->data->enqueued;
}

static void hook_wake(const struct device *dev)
{
	note(" W%u", index_of(dev));
	dev->data->woken = true;
}

static int hook_notify(const struct device *dev, opwest_accelerator_callback_t callback, void *user)
{
	(void)callback;
	(void)user;
	note(" N%u", index_of(dev));
	expect(false, "a model set a callback");
	return 0;
}

static int hook_activate(const struct device *dev)
{
	note(" A%u", index_of(dev));
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
	dev->data->enqueued = 0;
	return rc;
}

static int hook_close(const struct device *dev)
{
	note(" C%u", index_of(dev));
	expect(dev->api->open == NULL || dev->data->owned, "closed and not open");
	expect(dev->data->job_count == 0 || dev->data->timed_out || cancelled,
	       "closed before it was drained");
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
	expect(dev->data->job_count == 0 || dev->data->timed_out || cancelled,
	       "deactivated before it was drained");
	dev->data->activations -= dev->data->activations > 0;
	dev->data->timed_out = false;
	dev->data->job_count = 0;
	return fault();
}

static int hook_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	struct opwest_host_data *const data = dev->data;

	note(" S%u:%lu:%ld", index_of(dev), (unsigned long)leave, (long)timeout_ms);
	expect(dev->api->open == NULL || data->owned, "synced and not open");

	int rc = fault();

	if (rc == 0 && data->woken && data->job_count > leave) {
		data->woken = false;
		rc = -EINTR;
	}
	if (rc == -ETIMEDOUT && timeout_ms > 0) {
		now += timeout_ms;
	}
	if (rc != -ETIMEDOUT && rc != -EINTR && rc != -EAGAIN) {
		drain(dev, leave);
	}
	data->timed_out = rc == -ETIMEDOUT || rc == -EAGAIN;
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

int64_t opwest_port_uptime_ms(void)
{
	return now;
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
	const struct job job = {step, 0U, a, b, y};

	if (dev != NULL) {
		drain(dev, 0U);
	}
	compute(&job);
}

/* Launches that enqueue: -EAGAIN if the queue is full. */
int32_t journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		       const struct opwest_launch *launch);
int32_t journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		       const struct opwest_launch *launch)
{
	const struct job job = {step, launch->slot, a, b, y};
	const struct device *const dev = launch->dev;
	const unsigned int index = index_of(dev);
	const unsigned int hidden = properties[index].hidden;

	note(" op%ld@%u:%s:%ld", (long)step, index, name_of(launch->program),
	     (long)launch->timeout_ms);
	expect(dev->api->open == NULL || dev->api->close == NULL || dev->data->owned,
	       "launch without owning the device");
	expect(launch->step == step, "launch of another step");
	expect(dev->api->load == NULL || launch->program == NULL ||
		       (dev->data->loaded && dev->data->program == launch->program),
	       "launch of another program");
	expect(dev->api->info == NULL || properties[index].depth == 0 ||
		       (launch->slot < properties[index].depth &&
			dev->data->job_count < properties[index].depth),
	       "launch beyond the queue");
	for (unsigned int i = 0; i < dev->data->job_count; i++) {
		expect(dev->api->info == NULL || properties[index].depth == 0 ||
			       dev->data->jobs[i].slot != launch->slot,
		       "two jobs with one slot");
	}

	const int32_t rc = fault();

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
	cancelled = false;

	const int rc = subject->run();

	cancelled = false;
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

	cancel = subject->cancel;
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

	while (scanf("%63s %c %d %d %x %x %x", name, &ending, &null, &cancel_position, &masks[0],
		     &masks[1], &masks[2]) == 7) {
		const struct subject *subject = NULL;

		for (int i = 0; subjects[i] != NULL; i++) {
			if (strcmp(subjects[i]->name, name) == 0) {
				subject = subjects[i];
			}
		}
		for (int i = 0; i < HANDLES; i++) {
			if (scanf("%u %u %u", &properties[i].depth, &properties[i].switching,
				  &properties[i].hidden) != 3) {
				return 2;
			}
		}
		if (scanf("%d", &fault_count) != 1 || subject == NULL || fault_count > 8) {
			return 2;
		}
		memset(faults, 0, sizeof(faults));
		for (int i = 0; i < fault_count; i++) {
			if (scanf("%d %d %d", &faults[i].position, &faults[i].code,
				  &faults[i].repeats) != 3) {
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
				.info = (has & HAS_INFO) != 0 ? hook_info : NULL,
				.check = (has & HAS_CHECK) != 0 ? hook_check : NULL,
				.load = (has & HAS_LOAD) != 0 ? hook_load : NULL,
				.enqueued = (has & HAS_ENQUEUED) != 0 ? hook_enqueued : NULL,
				.wake = (has & HAS_WAKE) != 0 ? hook_wake : NULL,
				.notify = hook_notify,
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
		now = 1000;
		play(subject, ending);
		puts(".");
	}
	return 0;
}
