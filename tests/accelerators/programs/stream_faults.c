/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a stream of frames for each case of journal.c. Prints the calls with their results, and the
 * results of the frames; stream_oracle.py has the rules.
 */
#include <errno.h>
#include <stdio.h>

#include <faulty.h>

#include "journal.h"

#define FRAMES 5

FAULTY_STREAM_DEFINE(stream);
static const struct faulty_devices context = {
	.first = &handles[1], .second = &handles[0], .third = &handles[2]};

static int32_t *result_of(const struct faulty_frame *frame)
{
	OPWEST_ALIGNED(64) static int32_t results[2][16];

	return results[frame == &stream.state->frames[0] ? 0 : 1];
}

/* Prints the calls of a function of the stream, its result, and the status if it has failed. */
static int say(const char *what, int rc)
{
	const struct opwest_status *const status = &stream.workspace.status;

	journal_note(" %s:%d", what, rc);
	if (rc != 0 && rc != -ENOENT) {
		journal_note(" status:%ld:%u:%u", (long)status->code, status->hook, status->device);
	}
	journal_print();
	return rc;
}

static int poll_frame(void)
{
	const struct faulty_frame *frame;
	const int rc = faulty_poll(&stream, 0, &frame);
	uint32_t digest = 0;

	if (rc == -EAGAIN) {
		journal_print();
		return rc;
	}
	(void)say("poll", rc);
	for (int i = 0; rc == 0 && i < ELEMENTS; i++) {
		digest = (digest ^ (uint32_t)result_of(frame)[i]) * 16777619U;
	}
	if (rc == 0) {
		printf(" %08x", digest);
	}
	return rc;
}

static int cancel(void)
{
	return faulty_stream_cancel(&stream);
}

static void play(void)
{
	const struct faulty_frame *frame;
	int submitted = 0;

	(void)say("open", faulty_stream_open(&stream, &context));
	/* After a failure of open or a time-out the next one opens again. */
	for (int tries = 0; tries < 200 && submitted < FRAMES; tries++) {
		if (!stream.workspace.opened) {
			(void)say("open", faulty_stream_open(&stream, &context));
			continue;
		}
		while (submitted < FRAMES && (frame = faulty_stream_frame(&stream)) != NULL) {
			char what[24];

			for (int i = 0; i < ELEMENTS; i++) {
				frame->input.x[i] = submitted * 7 + i;
			}
			(void)snprintf(what, sizeof(what), "submit%d", submitted);
			if (say(what, faulty_submit(&stream, &(struct faulty_inputs){0},
						    &(struct faulty_outputs){.y = result_of(frame)})) != 0) {
				break; /* the same frame again */
			}
			submitted++;
		}
		while (poll_frame() == -EAGAIN) {
		}
	}
	while (poll_frame() != -ENOENT) {
	}
	(void)say("close", stream.workspace.opened ? faulty_stream_close(&stream) : 0);
	journal_leaks();
	journal_print();
	putchar('\n');
}

static const struct subject subject = {
	.name = "faulty", .opened = &stream.workspace.opened, .cancel = cancel, .play = play};
const struct subject *const subjects[] = {&subject, NULL};
