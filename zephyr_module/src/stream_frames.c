/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of one frame, and the wait for the device that it needs next. */
#include <errno.h>
#include <stddef.h>

#include "devices_internal.h"
#include "stream_internal.h"

/* The next wait of a stream, where more than one device can end it and no driver calls back. */
#define SHORT_SLICE_MS 1

/* Ends all unfinished frames. An older one that is complete keeps its result. */
static enum opwest_stream_progress failed(struct opwest_stream *stream, int rc)
{
	const bool keeps = stream->count > 1U &&
			   opwest_stream_is_complete(stream, opwest_stream_frame_of(stream, 0U));

	rc = stream->plan->abandon(rc, stream);
	/* -EAGAIN of poll has another meaning. */
	stream->failure = rc == -EAGAIN ? -EIO : rc;
	opwest_stream_count(stream, keeps ? 1U : 0U);
	return OPWEST_STREAM_FAILED;
}

static enum opwest_stream_progress hook_failed(struct opwest_stream *stream, enum opwest_hook hook,
					       const struct opwest_stream_action *action, int rc)
{
	return failed(stream, opwest_devices_failed(stream->plan->set, stream->status, 0, hook,
						    action->device, action->step, rc));
}

static void finished(struct opwest_stream *stream, uint8_t leader, uint32_t leave)
{
	struct opwest_slot *const slot = &stream->slots[leader];

	stream->since[leader] = opwest_port_uptime_ms();
	if (slot->unfinished > leave) {
		slot->unfinished = leave;
	}
	if (leave > 0U) {
		return;
	}
	slot->flags &= (uint8_t)~OPWEST_SLOT_UNCOUNTED;
	for (uint32_t i = 0; i < stream->plan->set->count; i++) {
		if (stream->slots[i].leader == leader) {
			stream->slots[i].launched = OPWEST_NO_STEP;
		}
	}
}

/* The launches that remain after the end of the next one; without a count all end together. */
static uint32_t after_next(const struct opwest_slot *leader)
{
	return (leader->flags & OPWEST_SLOT_UNCOUNTED) != 0U ? 0U : leader->unfinished - 1U;
}

/* The time until the device of an action must have made progress; negative: no limit. */
static int64_t time_left(const struct opwest_stream *stream, uint32_t index)
{
	const struct opwest_slot *const leader = opwest_devices_leader(stream->slots, index);
	int64_t limit = stream->plan->set->devices[index].timeout_ms;
	int64_t left;

	if (limit < 0) {
		return -1;
	}
	if ((leader->flags & OPWEST_SLOT_UNCOUNTED) != 0U) {
		limit *= leader->unfinished;
	}
	left = limit - (opwest_port_uptime_ms() - stream->since[stream->slots[index].leader]);
	return left < 0 ? 0 : left;
}

/*
 * Waits until at most `leave` launches of the device of an action are unfinished, without blocking.
 * The time-out applies to each launch: it begins when the one before has ended.
 */
static enum opwest_stream_progress drain(struct opwest_stream *stream,
					 struct opwest_stream_frame *frame,
					 const struct opwest_stream_action *action, uint32_t leave)
{
	const uint8_t index = action->device;
	struct opwest_slot *const leader = opwest_devices_leader(stream->slots, index);

	while (leader->unfinished > leave) {
		const uint32_t next = after_next(leader);
		const int rc = opwest_accelerator_sync(leader->dev, next, 0);

		if (rc == -EAGAIN || rc == -EINTR || rc == -ETIMEDOUT) {
			if (time_left(stream, index) != 0) {
				frame->blocked = index;
				return OPWEST_STREAM_BLOCKED;
			}
			stream->slots[index].flags |= OPWEST_SLOT_LOST;
			stream->slots[index].launched = OPWEST_NO_STEP;
			return hook_failed(stream, OPWEST_HOOK_SYNC, action, -ETIMEDOUT);
		}
		finished(stream, stream->slots[index].leader, next);
		if (rc != 0) {
			return hook_failed(stream, OPWEST_HOOK_SYNC, action, rc);
		}
	}
	return OPWEST_STREAM_COMPLETE;
}

/* Waits for a launch of a device, by its number. */
static enum opwest_stream_progress drain_to(struct opwest_stream *stream,
					    struct opwest_stream_frame *frame,
					    const struct opwest_stream_action *action,
					    uint32_t number)
{
	const struct opwest_slot *const leader =
		opwest_devices_leader(stream->slots, action->device);

	return drain(stream, frame, action, leader->count - number);
}

static enum opwest_stream_progress perform(struct opwest_stream *stream,
					   struct opwest_stream_frame *frame,
					   const struct opwest_stream_action *action)
{
	const uint32_t number = frame == &stream->frames[0] ? 0U : 1U;
	const int32_t code = stream->plan->perform(stream, number, frame->at);
	struct opwest_slot *leader;

	if (code == 0) {
		return OPWEST_STREAM_COMPLETE;
	}
	if (action->kind == OPWEST_STREAM_CACHE) {
		return hook_failed(stream, OPWEST_HOOK_CACHE, action, code);
	}
	if (code == -EAGAIN && action->use != OPWEST_STREAM_NO_USE) {
		leader = opwest_devices_leader(stream->slots, action->device);
		if (leader->unfinished > 0U) {
			frame->room = leader->count - leader->unfinished + 1U;
			frame->is_full = true;
			frame->blocked = action->device;
			return OPWEST_STREAM_BLOCKED;
		}
	}
	opwest_status_clear(stream->status); /* perhaps that of refused arguments */
	return failed(stream, opwest_status_failed(stream->status, stream->plan->set->model,
						   action->step, code));
}

/* Prepares a call on a device: makes room in the queue, loads the program. */
static enum opwest_stream_progress prepare(struct opwest_stream *stream,
					   struct opwest_stream_frame *frame,
					   const struct opwest_stream_action *action)
{
	const struct opwest_stream_plan *const plan = stream->plan;
	enum opwest_stream_progress done = OPWEST_STREAM_COMPLETE;
	int rc;

	if (frame->is_full) {
		done = drain_to(stream, frame, action, frame->room);
		frame->is_full = done == OPWEST_STREAM_BLOCKED;
	}
	if (done == OPWEST_STREAM_COMPLETE) {
		done = drain(stream, frame, action,
			     opwest_devices_room(stream->slots, &plan->set->uses[action->use]));
	}
	if (done != OPWEST_STREAM_COMPLETE) {
		return done;
	}
	rc = opwest_devices_prepare(plan->set, stream->slots, stream->status, action->use,
				    action->step);
	return rc == 0 ? OPWEST_STREAM_COMPLETE : failed(stream, rc);
}

static enum opwest_stream_progress act(struct opwest_stream *stream,
				       struct opwest_stream_frame *frame,
				       const struct opwest_stream_action *action)
{
	enum opwest_stream_progress done = OPWEST_STREAM_COMPLETE;

	if (action->kind == OPWEST_STREAM_WAIT) {
		return drain_to(stream, frame, action, frame->launched[action->launch]);
	}
	if (action->use != OPWEST_STREAM_NO_USE) {
		done = prepare(stream, frame, action);
	}
	if (done == OPWEST_STREAM_COMPLETE) {
		done = perform(stream, frame, action);
	}
	if (done == OPWEST_STREAM_COMPLETE && action->kind == OPWEST_STREAM_LAUNCH) {
		const uint8_t leader = stream->slots[action->device].leader;

		if (stream->slots[leader].unfinished == 0U) {
			stream->since[leader] = opwest_port_uptime_ms();
		}
		opwest_devices_launched(stream->slots, action->device);
		frame->launched[action->launch] = stream->slots[leader].count;
	}
	return done;
}

enum opwest_stream_progress opwest_stream_advance(struct opwest_stream *stream, uint32_t age,
						  uint32_t budget)
{
	struct opwest_stream_frame *const frame = opwest_stream_frame_of(stream, age);

	while (!opwest_stream_is_complete(stream, frame)) {
		const struct opwest_stream_action *const action = &stream->plan->actions[frame->at];
		enum opwest_stream_progress done;

		if (opwest_devices_cancelled(stream->slots)) {
			return failed(stream,
				      opwest_status_cancelled(stream->status, action->step));
		}
		if (age > 0U && opwest_stream_frame_of(stream, 0U)->at < action->gate) {
			return OPWEST_STREAM_BLOCKED;
		}
		if (action->kind == OPWEST_STREAM_CALL || action->kind == OPWEST_STREAM_COPY) {
			if (budget == 0U) {
				return OPWEST_STREAM_COMPUTES;
			}
			budget--;
		}
		done = act(stream, frame, action);
		if (done != OPWEST_STREAM_COMPLETE) {
			return done;
		}
		frame->at++;
	}
	return OPWEST_STREAM_COMPLETE;
}

/* Limits a wait in which nothing may wake the caller. */
static int64_t limited(const struct opwest_stream *stream, const struct device *dev, int64_t limit)
{
	const struct opwest_accelerator_driver_api *const api = opwest_accelerator_api(dev);
	int64_t slice = -1;

	if (stream->count > 1U && !stream->notifies) {
		slice = SHORT_SLICE_MS;
	} else if (api == NULL || api->wake == NULL) {
		slice = OPWEST_DEVICES_SLICE_MS;
	}
	return slice >= 0 && (limit < 0 || limit > slice) ? slice : limit;
}

enum opwest_stream_progress opwest_stream_wait(struct opwest_stream *stream, int64_t left)
{
	struct opwest_stream_frame *const frame = opwest_stream_frame_of(stream, 0U);
	const struct opwest_stream_action *const action = &stream->plan->actions[frame->at];
	const uint8_t index = frame->blocked;
	const uint8_t leader = stream->slots[index].leader;
	const struct device *const dev = stream->slots[leader].dev;
	const uint32_t next = after_next(&stream->slots[leader]);
	int64_t limit = time_left(stream, index);
	int rc = -EAGAIN;

	if (stream->slots[leader].unfinished == 0U) {
		return OPWEST_STREAM_BLOCKED; /* the younger frame has seen the end */
	}

	limit = limited(stream, dev, limit < 0 || (left >= 0 && left < limit) ? left : limit);
	__atomic_store_n(&stream->waiting, dev, __ATOMIC_SEQ_CST);
	/* Either this thread sees the event, or the callback sees the wait and wakes it. */
	if (__atomic_load_n(&stream->event, __ATOMIC_SEQ_CST) == 0U) {
		rc = opwest_accelerator_sync(dev, next,
					     limit > INT32_MAX ? INT32_MAX : (int32_t)limit);
	}
	__atomic_store_n(&stream->waiting, NULL, __ATOMIC_SEQ_CST);
	if (rc == -EAGAIN || rc == -EINTR || rc == -ETIMEDOUT) {
		return OPWEST_STREAM_BLOCKED; /* advance() finds an exceeded time-out */
	}
	finished(stream, leader, next);
	return rc == 0 ? OPWEST_STREAM_COMPLETE : hook_failed(stream, OPWEST_HOOK_SYNC, action, rc);
}
