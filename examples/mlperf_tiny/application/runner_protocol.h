/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * The serial protocol of the MLPerf Tiny runner, on the side of the device: commands end in '%',
 * answers are lines, and each answer ends in "m-ready". Reference: mlcommons/tiny, benchmark/api.
 * Portable C without the C library's printf.
 */

#ifndef RUNNER_PROTOCOL_H_
#define RUNNER_PROTOCOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Characters of the longest command, without '%'. */
#define RUNNER_COMMAND_SIZE 80

/** The model, its input buffer and the functions of the port. */
struct runner_config {
	const char *model;  /**< of the benchmark: kws01, ic01, vww01 or ad01 */
	const char *vendor; /**< printed by the command `name` */
	uint8_t *buffer;    /**< input bytes */
	size_t capacity;    /**< bytes of the buffer */
	void (*put)(char character);
	uint64_t (*microseconds)(void);
	/** Convert the buffer to the input of the model; returns 0 or a negative errno. */
	int (*load)(const uint8_t *bytes, size_t size);
	/** Run the model once; returns 0 or a negative errno. */
	int (*infer)(void);
	/** Print the numbers of the result, separated by commas. */
	void (*results)(void);
};

/** State of the protocol; starts as zeros with a config. */
struct runner {
	const struct runner_config *config;
	char command[RUNNER_COMMAND_SIZE + 1];
	size_t length;
	bool too_long;
	size_t expected;
	size_t loaded;
};

/** Print the messages after reset. */
void runner_start(struct runner *runner);

/** Process one received character; a command runs when its '%' is received. */
void runner_receive(struct runner *runner, char character);

/** Print a text. */
void runner_text(const struct runner *runner, const char *text);

/** Print an unsigned number in decimal. */
void runner_number(const struct runner *runner, uint64_t number);

/** Print a finite number with three decimals, rounded to nearest. */
void runner_decimal(const struct runner *runner, float value);

#endif /* RUNNER_PROTOCOL_H_ */
