/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Two frames of one model at the same time: `<model>_submit()` and `<model>_poll()`.
 *
 * The functions of this file are for generated code, except opwest_stream_raise().
 *
 * A frame is one execution of the model's actions: those of `<model>_run()`, in the same order. Two
 * frames share the devices, the constants and the states; every other tensor exists twice. The
 * younger frame performs an action that uses a state only after the older one has performed all
 * its actions that conflict with it, so the results are those of `<model>_run()`.
 *
 * The thread that submits the first frame owns the devices until no frame is in flight.
 */
#ifndef OPWEST_STREAM_H_
#define OPWEST_STREAM_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/devices.h>
#include <opwest/model.h>
#include <opwest/status.h>

#ifdef __ZEPHYR__
#include <zephyr/kernel.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The number of frames that can be in flight. */
#define OPWEST_STREAM_FRAMES 2U

/** The kinds of actions. */
enum opwest_stream_kind {
	/** Wait for a launch of this frame. */
	OPWEST_STREAM_WAIT = 0,
	/** Call an operator that enqueues work on a device. */
	OPWEST_STREAM_LAUNCH = 1,
	/** Call an operator that has ended when it returns. */
	OPWEST_STREAM_CALL = 2,
	/** Cache maintenance. */
	OPWEST_STREAM_CACHE = 3,
	/** Copy a tensor to a state. */
	OPWEST_STREAM_COPY = 4,
};

/** No use of a device: a call on the processor. */
#define OPWEST_STREAM_NO_USE UINT16_MAX

/** One action of a frame. */
struct opwest_stream_action {
	/** The number of actions that the older frame must have performed. */
	uint32_t gate;
	/** The step; for a wait the first step that it completes. */
	uint16_t step;
	/** The number of the launch that this action waits for, or makes. */
	uint16_t launch;
	/** The use of a device with a program, or OPWEST_STREAM_NO_USE. */
	uint16_t use;
	/** The index of the device; of waits, launches, calls with a use, and cache maintenance. */
	uint8_t device;
	/** enum opwest_stream_kind */
	uint8_t kind;
};

struct opwest_stream;

/** The actions of a model: constant. */
struct opwest_stream_plan {
	/** The devices of the model. */
	const struct opwest_device_set *set;
	const struct opwest_stream_action *actions;
	uint32_t count;
	/**
	 * Calls the operator of an action, copies, or maintains the cache; returns the status.
	 * `stream` is the first member of the model's structure.
	 */
	int32_t (*perform)(struct opwest_stream *stream, uint32_t frame, uint32_t action);
	/** Undoes everything after a failure, as run does; returns `rc`. */
	int (*abandon)(int rc, struct opwest_stream *stream);
};

/** One frame. */
struct opwest_stream_frame {
	/** The numbers of its launches on their devices, by launch. */
	uint32_t *launched;
	/** The launch to wait for before a full queue is tried again. */
	uint32_t room;
	/** The number of performed actions. */
	uint32_t at;
	/** The device that it waits for; valid while it waits. */
	uint8_t blocked;
	/** Whether the queue was full. */
	bool is_full;
};

/** The state of a stream: zeros before the first open. */
struct opwest_stream {
	const struct opwest_stream_plan *plan;
	struct opwest_slot *slots;
	struct opwest_status *status;
	/** That of the workspace: set while a frame is in flight; NULL: not checked. */
	opwest_port_flag_t *running;
	/** The time of the last progress of each device, milliseconds. */
	int64_t *since;
	/** The device of the wait in progress, or NULL; written by the owner, read by callbacks. */
	const struct device *waiting;
	/** Set by callbacks: a launch has ended. Not beside members that only the owner uses. */
	uint32_t event;
	/** The application's callback, or NULL. */
	void (*callback)(void *user);
	void *user;
	/** The thread that submitted. */
	uintptr_t thread;
	struct opwest_stream_frame frames[OPWEST_STREAM_FRAMES];
	/** The failure that poll has not returned yet, or 0. */
	int failure;
	/** The oldest frame in flight. */
	uint8_t first;
	/** The number of frames in flight. Other threads read it and @ref thread. */
	uint8_t count;
	/** Whether all drivers call back. */
	bool notifies;
};

/**
 * @brief Begin the use of a stream whose workspace was opened.
 *
 * @param stream   The stream, without a frame in flight.
 * @param plan     The actions of the model.
 * @param slots    The slots of the workspace.
 * @param status   The status of the workspace.
 * @param running  Its running mark, or NULL.
 * @param since    Memory for a time per device.
 * @param launched Memory for the launches of both frames.
 * @param launches The number of launches of a frame.
 */
void opwest_stream_open(struct opwest_stream *stream, const struct opwest_stream_plan *plan,
			struct opwest_slot *slots, struct opwest_status *status,
			opwest_port_flag_t *running, int64_t *since, uint32_t *launched,
			uint32_t launches);

/**
 * @brief Return the frame to submit next.
 *
 * @param stream The stream, open.
 *
 * @return Its index; OPWEST_STREAM_FRAMES if none is free, or a failure was not polled
 */
uint32_t opwest_stream_free(const struct opwest_stream *stream);

/**
 * @brief Begin a call of submit, poll or notify.
 *
 * Without a frame in flight it sets the mark of the workspace.
 *
 * @param stream The stream.
 *
 * @retval 0      The calling thread may use the stream until opwest_stream_leave().
 * @retval -EPERM Another thread has a frame in flight.
 * @retval -EBUSY Another thread is in a function of the workspace.
 */
int opwest_stream_enter(struct opwest_stream *stream);

/**
 * @brief End a call: without a frame in flight others may use the workspace.
 *
 * @param stream The stream.
 * @param rc     The result of the call.
 *
 * @return @p rc
 */
int opwest_stream_leave(struct opwest_stream *stream, int rc);

/**
 * @brief Begin the frame of opwest_stream_free(), and advance.
 *
 * The first frame acquires all devices, in the order of the addresses of their handles.
 *
 * @param stream The stream, with a free frame, on the thread of the other frame.
 *
 * @retval 0          In flight.
 * @retval -EBUSY     Another owner did not release a device in its own_timeout_ms.
 * @retval -ECANCELED Cancelled during the wait for another owner.
 * @return Another negative errno of a hook; no frame is in flight
 */
int opwest_stream_submit(struct opwest_stream *stream);

/**
 * @brief Advance, and return the result of the oldest frame.
 *
 * @param stream     The stream.
 * @param timeout_ms The longest wait, milliseconds; 0: none; OPWEST_FOREVER.
 * @param frame      Set to the index of the frame if the result is 0.
 *
 * @retval 0       The oldest frame is complete, and not in flight any more.
 * @retval -EAGAIN It is not complete.
 * @retval -ENOENT No frame is in flight.
 * @return The failure, as of run; no frame is in flight
 */
int opwest_stream_poll(struct opwest_stream *stream, int32_t timeout_ms, uint32_t *frame);

/**
 * @brief Set the function that is called when a poll may make progress.
 *
 * @param stream   The stream, open, without a frame in flight.
 * @param callback The function, or NULL. Drivers call it from a thread or an ISR: it must not
 *                 block, and not use the stream. It may be called once more after the last
 *                 frame.
 * @param user     Its argument.
 *
 * @retval 0        Set.
 * @retval -EBUSY   A frame is in flight.
 * @retval -ENOTSUP A driver has no notify hook; the function is not set.
 */
int opwest_stream_notify(struct opwest_stream *stream, void (*callback)(void *user), void *user);

#if defined(__ZEPHYR__) && defined(CONFIG_POLL)
/**
 * @brief Raise a signal: a callback for `<model>_stream_notify()`, so that k_poll() waits for it.
 *
 * @param user A struct k_poll_signal, initialised.
 */
static inline void opwest_stream_raise(void *user)
{
	(void)k_poll_signal_raise((struct k_poll_signal *)user, 0);
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_STREAM_H_ */
