/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_play MODEL MODE FRAMES SEED [DELAY DEPTH ROOM SWITCHING FLAGS]: prints the digest of every frame and of the
 * final state. MODE is run, or stream; FLAGS are letters of the options. The last line counts the overlap: the actions that the younger frame had performed when the older one ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opwest/accelerator.h>
#include <opwest/port_sync.h>

#include "stream_device.h"
#include "stream_play.h"

static uint32_t seed;

static uint32_t drawn(uint32_t limit)
{
	seed = seed * 1664525U + 1013904223U;
	return (seed >> 8) % limit;
}

void fill_input(uint8_t *data, uint32_t size, uint32_t frame, uint32_t number)
{
	uint32_t value = frame * 2654435761U + number * 40503U;

	for (uint32_t i = 0; i < size; i++) {
		value = value * 1664525U + 1013904223U;
		data[i] = (uint8_t)(value >> 24);
	}
}

void add_to_digest(uint32_t *digest, const uint8_t *data, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		*digest = (*digest ^ data[i]) * 16777619U;
	}
}

static void stop(const char *what, uint32_t frame, int rc)
{
	printf("%s of frame %u returned %d\n", what, frame, rc);
	exit(1);
}

static void run_all(const struct player *player, uint32_t frames)
{
	for (uint32_t frame = 0; frame < frames; frame++) {
		uint32_t digest = 0;
		const int rc = player->run(frame, &digest);

		if (rc != 0) {
			stop("run", frame, rc);
		}
		printf("%u: %08x\n", frame, digest);
	}
}

/* The actions that the younger frame has performed. */
static uint32_t ahead(const struct opwest_stream *stream)
{
	return stream->count < 2U ? 0U : stream->frames[(stream->first + 1U) % 2U].at;
}

/* Returns the overlap. */
static uint32_t stream_all(const struct player *player, uint32_t frames)
{
	uint32_t submitted = 0;
	uint32_t overlap = 0;

	for (uint32_t ended = 0; ended < frames;) {
		const bool pauses = drawn(8) == 0U; /* ends all frames: the devices are released */
		uint32_t digest = 0;
		int rc = 0;

		while (submitted < frames && rc == 0 && !(pauses && submitted > ended)) {
			rc = player->submit(submitted);
			submitted += rc == 0;
		}
		if (rc != 0 && rc != -EAGAIN) {
			stop("submit", submitted, rc);
		}
		do {
			static const int32_t limits[] = {0, 0, 1, 20, OPWEST_FOREVER};
			const uint32_t at = ahead(player->stream);

			rc = player->poll(limits[drawn(5)], ended, &digest);
			overlap += rc == 0 ? at : 0U;
		} while (rc == -EAGAIN);
		if (rc != 0) {
			stop("poll", ended, rc);
		}
		printf("%u: %08x\n", ended++, digest);
		if (drawn(4) == 0U) {
			opwest_port_sleep_us(drawn(300));
		}
	}
	if (player->poll(0, 0, &(uint32_t){0}) != -ENOENT) {
		stop("an additional poll", frames, 0);
	}
	return overlap;
}

int main(int argc, char **argv)
{
	const char *const flags = argc > 9 ? argv[9] : "";
	const struct player *player = NULL;
	uint32_t overlap = 0;
	bool streams;
	int rc;

	for (uint32_t i = 0; i < player_count && argc > 4; i++) {
		if (strcmp(all_players[i]->name, argv[1]) == 0) {
			player = all_players[i];
		}
	}
	if (player == NULL) {
		return 2;
	}
	alarm(100);
	streams = strcmp(argv[2], "stream") == 0;
	seed = (uint32_t)atoi(argv[4]);
	stream_device_options = (struct stream_device_options){
		.delay_us = argc > 5 ? (uint32_t)atoi(argv[5]) : 0U,
		.depth = argc > 6 ? (uint16_t)atoi(argv[6]) : 0U,
		.room = argc > 7 ? (uint16_t)atoi(argv[7]) : 0U,
		.switching = argc > 8 ? (uint8_t)atoi(argv[8]) : OPWEST_SWITCH_LOAD,
		.blocks = strchr(flags, 'b') != NULL,
		.uncounted = strchr(flags, 'u') != NULL,
		.silent = strchr(flags, 's') != NULL,
		.deaf = strchr(flags, 'd') != NULL,
	};
	stream_devices_start();
	rc = player->open(streams);
	if (rc != 0) {
		stop("open", 0, rc);
	}
	if (streams) {
		overlap = stream_all(player, (uint32_t)atoi(argv[3]));
	} else {
		run_all(player, (uint32_t)atoi(argv[3]));
	}
	printf("state %08x\n", player->state(streams));
	rc = player->close(streams);
	if (rc != 0) {
		stop("close", 0, rc);
	}
	stream_devices_stop();
	printf("overlap %u jobs %u loads %u full %u\n", overlap, stream_device_counts.jobs,
	       stream_device_counts.loads, stream_device_counts.full);
	return 0;
}
