/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Shared by stream.c (submit and poll) and stream_frames.c (the actions of a frame).
 */
#ifndef OPWEST_STREAM_INTERNAL_H_
#define OPWEST_STREAM_INTERNAL_H_

#include <opwest/stream.h>

/** How far a frame has advanced. */
enum opwest_stream_progress {
	/** All actions are performed. */
	OPWEST_STREAM_COMPLETE,
	/** The next action is one on the processor. */
	OPWEST_STREAM_COMPUTES,
	/** The frame waits for a device, or for the older frame. */
	OPWEST_STREAM_BLOCKED,
	/** The failure of the stream is set; no incomplete frame is in flight. */
	OPWEST_STREAM_FAILED,
};

/** @brief Return a frame in flight: the oldest one has the age 0. */
static inline struct opwest_stream_frame *opwest_stream_frame_of(struct opwest_stream *stream,
								 uint32_t age)
{
	return &stream->frames[(stream->first + age) % OPWEST_STREAM_FRAMES];
}

/** @brief Set the number of frames in flight, which other threads read. */
static inline void opwest_stream_count(struct opwest_stream *stream, uint32_t count)
{
	__atomic_store_n(&stream->count, (uint8_t)count, __ATOMIC_RELEASE);
}

/** @brief Return whether a frame has performed all its actions. */
static inline bool opwest_stream_is_complete(const struct opwest_stream *stream,
					     const struct opwest_stream_frame *frame)
{
	return frame->at == stream->plan->count;
}

/**
 * @brief Perform actions of a frame, without a wait.
 *
 * @param stream The stream.
 * @param age    The frame: 0 the oldest, 1 the younger one.
 * @param budget The number of actions on the processor that it may perform.
 *
 * @return Why it has ended
 */
enum opwest_stream_progress opwest_stream_advance(struct opwest_stream *stream, uint32_t age,
						  uint32_t budget);

/**
 * @brief Wait until the device of the oldest frame makes progress, or a driver calls back.
 *
 * @param stream The stream; its oldest frame is blocked.
 * @param left   The longest wait, milliseconds; negative: no limit.
 *
 * @retval OPWEST_STREAM_FAILED A launch has failed.
 * @return Another value: call opwest_stream_advance()
 */
enum opwest_stream_progress opwest_stream_wait(struct opwest_stream *stream, int64_t left);

#endif /* OPWEST_STREAM_INTERNAL_H_ */
