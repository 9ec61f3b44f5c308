/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_faults: reads lines "AT KIND CODE PACE DEPTH SWITCHING FLAGS" and plays a stream of frames for each. The call
 * number AT of a hook or an operator fails: KIND is "code" (it returns CODE once), "cancel" (it cancels the stream, and
 * succeeds), "again" (an operator returns -EAGAIN CODE times), or "none". A device ends a job at every PACE-th sync()
 * without a time-out, or at once in a sync() with one. FLAGS: u, s, d as for drivers without enqueued(), notify(), wake().
 *
 * It prints an event per call, and the results of the frames; the test has the rules. Events of devices: r ready is
 * not recorded; A activate, O open, L load, S sync, C close, D deactivate, x operator; "=CODE" is the result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/accelerator.h>

#include <faulty.h>

#define ELEMENTS 16
#define DEVICES  3
#define QUEUE    16
#define FRAMES   5

struct job {
	const int8_t *a;
	const int8_t *b;
	int8_t *y;
	char program;
};

/* The owner's thread is the only one: nothing is protected. */
static struct {
	struct job jobs[QUEUE];
	unsigned int count;
	unsigned int enqueued;
	unsigned int asked;
	bool active;
	bool owned;
	char program;
} states[DEVICES];

static struct {
	int at;
	char kind[8];
	int code;
	unsigned int pace;
	unsigned int depth;
	unsigned int switching;
} fault;

static int position;
static struct opwest_accelerator_driver_api api;
static const struct device devices[DEVICES] = {
	{"0", NULL, &api, NULL}, {"1", NULL, &api, NULL}, {"2", NULL, &api, NULL}};
static const struct faulty_devices context = {
	.first = &devices[1], .second = &devices[0], .third = &devices[2]};

FAULTY_STREAM_DEFINE(stream);

int32_t faulty_launch(int32_t step, const int8_t *a, const int8_t *b, int8_t *y,
		      const struct opwest_launch *launch);
int32_t faulty_call(int32_t step);

static int index_of(const struct device *dev)
{
	return (int)(dev - devices);
}

/* Returns the injected result of the present call; 0 to go on. */
static int injected(bool is_operator)
{
	const int at = position++;

	if (strcmp(fault.kind, "again") == 0) {
		if (at >= fault.at && is_operator && fault.code > 0) {
			fault.code--;
			return -EAGAIN;
		}
		return 0;
	}
	if (at != fault.at) {
		return 0;
	}
	if (strcmp(fault.kind, "cancel") == 0) {
		(void)faulty_stream_cancel(&stream);
		printf("cancel ");
		return 0;
	}
	return strcmp(fault.kind, "code") == 0 ? fault.code : 0;
}

static int ended(const char *event, int device, int rc)
{
	printf("%s%d=%d ", event, device, rc);
	return rc;
}

static void compute(const struct job *job)
{
	for (int i = 0; i < ELEMENTS; i++) {
		job->y[i] = (int8_t)(job->a[i] * 3 + job->b[(i + 1) % ELEMENTS] + job->program);
	}
}

static void end_job(int device)
{
	compute(&states[device].jobs[0]);
	states[device].count--;
	memmove(&states[device].jobs[0], &states[device].jobs[1],
		states[device].count * sizeof(struct job));
}

static int info(const struct device *dev, struct opwest_accelerator_info *info)
{
	(void)dev;
	info->queue_depth = (uint16_t)fault.depth;
	info->switching = (uint8_t)fault.switching;
	return 0;
}

static int activate(const struct device *dev)
{
	const int rc = injected(false);

	states[index_of(dev)].active = rc == 0;
	return ended("A", index_of(dev), rc);
}

static int deactivate(const struct device *dev)
{
	const int rc = injected(false);

	states[index_of(dev)].active = false;
	return ended("D", index_of(dev), rc);
}

static int open(const struct device *dev, int32_t timeout_ms)
{
	const int rc = injected(false);

	(void)timeout_ms;
	if (rc == 0) {
		states[index_of(dev)].owned = true;
		states[index_of(dev)].enqueued = 0;
	}
	return ended("O", index_of(dev), rc);
}

static int load(const struct device *dev, const struct opwest_program *program)
{
	const int rc = injected(false);

	if (rc == 0) {
		states[index_of(dev)].program = (char)program->data[0];
	}
	printf("L%d%c:%u=%d ", index_of(dev), (char)program->data[0], states[index_of(dev)].count, rc);
	return rc;
}

static uint32_t enqueued(const struct device *dev)
{
	return states[index_of(dev)].enqueued;
}

static int sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	const int device = index_of(dev);
	const int rc = injected(false);

	if (rc == -ETIMEDOUT || rc == -EINTR) {
		/* Nothing has ended. */
		if (states[device].count <= leave) {
			return ended("S", device, 0);
		}
		return ended("S", device, timeout_ms == 0 && rc == -ETIMEDOUT ? -EAGAIN : rc);
	}
	if (timeout_ms == 0 && states[device].count > leave &&
	    ++states[device].asked % fault.pace == 0U) {
		end_job(device);
	}
	while (timeout_ms != 0 && states[device].count > leave) {
		end_job(device);
	}
	if (states[device].count > leave) {
		if (rc == 0) {
			return ended("S", device, -EAGAIN);
		}
		end_job(device); /* it failed */
	}
	return ended("S", device, rc);
}

static void wake(const struct device *dev)
{
	(void)dev;
}

static int notify(const struct device *dev, opwest_accelerator_callback_t callback, void *user)
{
	(void)dev;
	(void)callback;
	(void)user;
	return 0;
}

static int close(const struct device *dev)
{
	const int device = index_of(dev);
	const int rc = injected(false);

	states[device].owned = false;
	states[device].count = 0; /* aborted: not computed */
	return ended("C", device, rc);
}

int32_t faulty_launch(int32_t step, const int8_t *a, const int8_t *b, int8_t *y,
		      const struct opwest_launch *launch)
{
	const int device = index_of(launch->dev);
	const int rc = injected(true);

	printf("x%d@%d%c:%u=%d ", (int)step, device, states[device].program, states[device].count,
	       rc);
	if (rc != 0) {
		return rc;
	}
	if (states[device].count == QUEUE) {
		abort();
	}
	states[device].jobs[states[device].count++] = (struct job){a, b, y, states[device].program};
	states[device].enqueued++;
	return 0;
}

int32_t faulty_call(int32_t step)
{
	const int rc = injected(true);

	printf("x%d@c=%d ", (int)step, rc);
	return rc;
}

static void print_tensor(const int8_t *y)
{
	uint32_t digest = 0;

	for (int i = 0; i < ELEMENTS; i++) {
		digest = (digest ^ (uint8_t)y[i]) * 16777619U;
	}
	printf("%08x ", digest);
}

static int8_t *result_of(const struct faulty_frame *frame)
{
	static int8_t results[2][ELEMENTS];

	return results[frame == &stream.state->frames[0] ? 0 : 1];
}

/* Prints the result of a function of the stream, and the status if it has failed. */
static void print_result(const char *what, int rc)
{
	const struct opwest_status *const status = &stream.workspace.status;

	printf("%s:%d ", what, rc);
	if (rc != 0 && rc != -ENOENT && rc != -EAGAIN) {
		printf("status:%d:%u:%u ", (int)status->code, status->hook, status->device);
	}
}

static void play(void)
{
	const struct faulty_frame *frame;
	char what[24];
	int submitted = 0;
	int rc;

	memset(states, 0, sizeof(states));
	position = 0;
	rc = faulty_stream_open(&stream, &context);
	print_result("open", rc);
	/* After a failure of open or a time-out the next one opens again. */
	for (int tries = 0; tries < 200 && submitted < FRAMES; tries++) {
		if (!stream.workspace.opened) {
			rc = faulty_stream_open(&stream, &context);
			print_result("open", rc);
			continue;
		}
		while (submitted < FRAMES && (frame = faulty_stream_frame(&stream)) != NULL) {
			for (int i = 0; i < ELEMENTS; i++) {
				frame->input.x[i] = (int8_t)(submitted * 7 + i);
			}
			rc = faulty_submit(&stream, &(struct faulty_inputs){0},
					   &(struct faulty_outputs){.y = result_of(frame)});
			(void)snprintf(what, sizeof(what), "submit%d", submitted);
			print_result(what, rc);
			if (rc != 0) {
				break; /* the same frame again */
			}
			submitted++;
		}
		do {
			rc = faulty_poll(&stream, 0, &frame);
			if (rc == -EAGAIN) {
				continue;
			}
			print_result("poll", rc);
			if (rc == 0) {
				print_tensor(result_of(frame));
			}
		} while (rc == -EAGAIN);
	}
	while ((rc = faulty_poll(&stream, 0, &frame)) != -ENOENT) {
		if (rc == 0) {
			printf("poll:0 ");
			print_tensor(result_of(frame));
		} else if (rc != -EAGAIN) {
			print_result("poll", rc);
		}
	}
	rc = stream.workspace.opened ? faulty_stream_close(&stream) : 0;
	print_result("close", rc);
	printf("positions:%d owned:%d active:%d\n", position,
	       states[0].owned + states[1].owned + states[2].owned,
	       states[0].active + states[1].active + states[2].active);
}

int main(void)
{
	char flags[8];

	while (scanf("%d %7s %d %u %u %u %7s", &fault.at, fault.kind, &fault.code, &fault.pace,
		     &fault.depth, &fault.switching, flags) == 7) {
		api = (struct opwest_accelerator_driver_api){
			.info = info,
			.activate = activate,
			.open = open,
			.load = load,
			.enqueued = strchr(flags, 'u') != NULL ? NULL : enqueued,
			.sync = sync,
			.wake = strchr(flags, 'd') != NULL ? NULL : wake,
			.notify = strchr(flags, 's') != NULL ? NULL : notify,
			.close = close,
			.deactivate = deactivate,
		};
		play();
	}
	return 0;
}
