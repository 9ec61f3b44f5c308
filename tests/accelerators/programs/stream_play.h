/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What the program of random streams requires of each model: generated functions.
 */
#ifndef STREAM_PLAY_H_
#define STREAM_PLAY_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/stream.h>

/** A model. `frame` is the number of a frame; a digest is a hash of all outputs, or of the state. */
struct player {
	const char *name;
	int (*open)(bool streams);
	int (*run)(uint32_t frame, uint32_t *digest);
	/** Returns -EAGAIN without a free frame. */
	int (*submit)(uint32_t frame);
	int (*poll)(int32_t timeout_ms, uint32_t frame, uint32_t *digest);
	int (*close)(bool streams);
	uint32_t (*state)(bool streams);
	const struct opwest_stream *stream;
};

extern const struct player *const all_players[];
extern const uint32_t player_count;

/** @brief Write the input `number` of a frame. */
void fill_input(uint8_t *data, uint32_t size, uint32_t frame, uint32_t number);

/** @brief Add bytes to a digest. */
void add_to_digest(uint32_t *digest, const uint8_t *data, uint32_t size);

#endif /* STREAM_PLAY_H_ */
