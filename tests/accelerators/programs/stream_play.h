/* SPDX-License-Identifier: Apache-2.0 */
/* What stream_play.c has for operators of random models; generated functions that it requires. */
#ifndef STREAM_PLAY_H_
#define STREAM_PLAY_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/launch.h>
#include <opwest/stream.h>

/* An argument: `in` or `out` or both, or a value. */
struct part {
	const uint8_t *in;
	uint8_t *out;
	uint32_t size;
	bool passed;
	uint8_t value;
};

#define STREAM_DEVICES 3

extern const struct device stream_devices[STREAM_DEVICES];

/* A step on the processor. */
int32_t stream_compute(uint32_t step, const struct part *parts, uint32_t count,
		       const struct opwest_launch *launch);

/* A step on a device. Returns -EAGAIN if the queue is full. */
int32_t stream_launch(uint32_t step, const struct part *parts, uint32_t count,
		      const struct opwest_launch *launch);

/* A step on a device, and a wait for all its work. */
int32_t stream_call(uint32_t step, const struct part *parts, uint32_t count,
		    const struct opwest_launch *launch);

/* The next state of stateful operators, which depends on the order of their calls. */
uint32_t stream_next(uint32_t step);

/* Sets the state of stateful operators, after a call that did not fail. */
void stream_keep(uint32_t state);

/* A model. `frame` is the number of a frame; a digest is a hash of all outputs, or of the state. */
struct player {
	const char *name;
	int (*open)(bool streams);
	int (*run)(uint32_t frame, uint32_t *digest);
	/* Returns -EAGAIN without a free frame. */
	int (*submit)(uint32_t frame);
	int (*poll)(int32_t timeout_ms, uint32_t frame, uint32_t *digest);
	int (*close)(bool streams);
	uint32_t (*state)(bool streams);
	const struct opwest_stream *stream;
};

extern const struct player *const all_players[];
extern const uint32_t player_count;

/* Writes the input `number` of a frame. */
void fill_input(uint8_t *data, uint32_t size, uint32_t frame, uint32_t number);

void add_to_digest(uint32_t *digest, const uint8_t *data, uint32_t size);

#endif /* STREAM_PLAY_H_ */
