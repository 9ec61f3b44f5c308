/* SPDX-License-Identifier: Apache-2.0 */
/* Submit and poll: two frames of a model, which advance as far as they can without a wait. */
#include <errno.h>
#include <stddef.h>

#include "devices_internal.h"
#include "stream_internal.h"

/*
 * Advances both frames without a wait. The older one has the processor first; the devices of the
 * younger one get their work in between. A complete frame returns at once: the processor belongs to
 * the caller.
 */
static enum opwest_stream_progress advance_all(struct opwest_stream *stream)
{
	enum opwest_stream_progress older;
	enum opwest_stream_progress younger;

	do {
		older = opwest_stream_advance(stream, 0U, 1U);
		younger = OPWEST_STREAM_BLOCKED;
		if (older != OPWEST_STREAM_FAILED && stream->count > 1U) {
			younger = opwest_stream_advance(stream, 1U,
							older == OPWEST_STREAM_BLOCKED ? 1U : 0U);
		}
	} while (younger != OPWEST_STREAM_FAILED &&
		 (older == OPWEST_STREAM_COMPUTES ||
		  (older == OPWEST_STREAM_BLOCKED && younger == OPWEST_STREAM_COMPUTES)));
	return younger == OPWEST_STREAM_FAILED ? OPWEST_STREAM_FAILED : older;
}

static void called_back(const struct device *dev, void *user)
{
	struct opwest_stream *const stream = user;
	const struct device *waiting;

	(void)dev;
	__atomic_store_n(&stream->event, 1U, __ATOMIC_SEQ_CST);
	waiting = __atomic_load_n(&stream->waiting, __ATOMIC_SEQ_CST);
	if (waiting != NULL) {
		opwest_accelerator_wake(waiting);
	}
	if (stream->callback != NULL) {
		stream->callback(stream->user);
	}
}

static bool is_owned(const struct opwest_stream *stream, uint32_t index)
{
	return stream->slots[index].owner != 0U;
}

static int acquire(struct opwest_stream *stream)
{
	const struct opwest_device_set *const set = stream->plan->set;
	int rc;

	opwest_devices_begin(set, stream->slots);
	rc = opwest_devices_acquire_all(set, stream->slots, stream->status);
	if (rc != 0) {
		/* No step has begun: the states are unchanged. */
		(void)opwest_devices_release_all(set, stream->slots, NULL, rc);
		return rc;
	}
	stream->notifies = true;
	for (uint32_t i = 0; i < set->count; i++) {
		if (is_owned(stream, i) &&
		    opwest_accelerator_notify(stream->slots[i].dev, called_back, stream) != 0) {
			stream->notifies = false;
		}
	}
	__atomic_store_n(&stream->thread, opwest_port_thread(), __ATOMIC_RELAXED);
	return 0;
}

void opwest_stream_open(struct opwest_stream *stream, const struct opwest_stream_plan *plan,
			struct opwest_slot *slots, struct opwest_status *status,
			opwest_port_flag_t *running, int64_t *since, uint32_t *launched,
			uint32_t launches)
{
	stream->plan = plan;
	stream->slots = slots;
	stream->status = status;
	stream->running = running;
	stream->since = since;
	stream->frames[0].launched = launched;
	stream->frames[1].launched = launched + launches;
	stream->callback = NULL;
	stream->user = NULL;
	stream->failure = 0;
	stream->first = 0U;
}

uint32_t opwest_stream_free(const struct opwest_stream *stream)
{
	return stream->failure != 0 || stream->count == OPWEST_STREAM_FRAMES
		       ? OPWEST_STREAM_FRAMES
		       : (stream->first + (uint32_t)stream->count) % OPWEST_STREAM_FRAMES;
}

int opwest_stream_enter(struct opwest_stream *stream)
{
	if (__atomic_load_n(&stream->count, __ATOMIC_ACQUIRE) > 0U) {
		return __atomic_load_n(&stream->thread, __ATOMIC_RELAXED) == opwest_port_thread()
			       ? 0
			       : -EPERM;
	}
	return stream->running == NULL || opwest_port_take(stream->running) ? 0 : -EBUSY;
}

int opwest_stream_leave(struct opwest_stream *stream, int rc)
{
	if (stream->count == 0U && stream->running != NULL) {
		opwest_port_give(stream->running);
	}
	return rc;
}

int opwest_stream_submit(struct opwest_stream *stream)
{
	struct opwest_stream_frame *const frame = &stream->frames[opwest_stream_free(stream)];

	if (stream->count == 0U) {
		const int rc = acquire(stream);

		if (rc != 0) {
			return rc;
		}
	}
	frame->at = 0U;
	frame->is_full = false;
	opwest_stream_count(stream, stream->count + 1U);
	/* Poll returns a failure, in the order of the frames. */
	(void)advance_all(stream);
	return 0;
}

/* Ends the oldest frame, which is complete; the last one releases the devices. */
static int completed(struct opwest_stream *stream, uint32_t *frame)
{
	int rc = 0;

	*frame = stream->first;
	if (stream->count == 1U && stream->failure == 0) {
		rc = opwest_devices_release_all(stream->plan->set, stream->slots, stream->status,
						0);
		if (rc != 0) {
			rc = stream->plan->abandon(rc, stream);
		}
	}
	stream->first = (uint8_t)((stream->first + 1U) % OPWEST_STREAM_FRAMES);
	opwest_stream_count(stream, stream->count - 1U);
	return rc == -EAGAIN ? -EIO : rc;
}

/* Advances until the oldest frame is complete or has failed, or the time is over. */
static void proceed(struct opwest_stream *stream, int32_t timeout_ms)
{
	const int64_t end = timeout_ms > 0 ? opwest_port_uptime_ms() + timeout_ms : 0;
	int64_t left = timeout_ms;

	for (;;) {
		__atomic_store_n(&stream->event, 0U, __ATOMIC_SEQ_CST);
		if (advance_all(stream) != OPWEST_STREAM_BLOCKED) {
			return;
		}
		if (timeout_ms > 0) {
			left = end - opwest_port_uptime_ms();
		}
		if ((timeout_ms >= 0 && left <= 0) ||
		    opwest_stream_wait(stream, left) == OPWEST_STREAM_FAILED) {
			return;
		}
	}
}

int opwest_stream_poll(struct opwest_stream *stream, int32_t timeout_ms, uint32_t *frame)
{
	int failure;

	if (stream->count > 0U && stream->failure == 0) {
		proceed(stream, timeout_ms);
	}
	if (stream->count > 0U) {
		return opwest_stream_is_complete(stream, opwest_stream_frame_of(stream, 0U))
			       ? completed(stream, frame)
			       : -EAGAIN;
	}
	failure = stream->failure;
	stream->failure = 0;
	return failure != 0 ? failure : -ENOENT;
}

int opwest_stream_notify(struct opwest_stream *stream, void (*callback)(void *user), void *user)
{
	const struct opwest_device_set *const set = stream->plan->set;

	if (stream->count > 0U) {
		return -EBUSY;
	}
	for (uint32_t i = 0; i < set->count && callback != NULL; i++) {
		if (opwest_devices_has_hooks(&set->devices[i]) &&
		    set->devices[i].first_step != OPWEST_NO_STEP) {
			const struct opwest_accelerator_driver_api *const api =
				opwest_accelerator_api(stream->slots[i].dev);

			if (api == NULL || api->notify == NULL) {
				return -ENOTSUP;
			}
		}
	}
	stream->callback = callback;
	stream->user = user;
	return 0;
}
