/* SPDX-License-Identifier: Apache-2.0 */

#include "runner_protocol.h"

#include <string.h>

#define DEFAULT_WARMUPS 10
#define BYTES_PER_LINE  8
#define MAX_NUMBER      100000000u

void runner_text(const struct runner *runner, const char *text)
{
	while (*text != '\0') {
		runner->config->put(*text++);
	}
}

void runner_number(const struct runner *runner, uint64_t number)
{
	char digits[21];
	size_t i = sizeof(digits) - 1;

	digits[i] = '\0';
	do {
		digits[--i] = (char)('0' + (int)(number % 10));
		number /= 10;
	} while (number != 0);
	runner_text(runner, &digits[i]);
}

void runner_decimal(const struct runner *runner, float value)
{
	uint64_t thousandths;

	if (value < 0.0f) {
		runner->config->put('-');
		value = -value;
	}
	thousandths = (uint64_t)(value * 1000.0f + 0.5f);
	runner_number(runner, thousandths / 1000);
	runner->config->put('.');
	for (uint64_t unit = 100; unit > 0; unit /= 10) {
		runner->config->put((char)('0' + (int)(thousandths / unit % 10)));
	}
}

static void line(const struct runner *runner, const char *before, const char *value,
		 const char *after)
{
	runner_text(runner, before);
	runner_text(runner, value);
	runner_text(runner, after);
	runner_text(runner, "\r\n");
}

static void number_line(const struct runner *runner, const char *before, uint64_t number,
			const char *after)
{
	runner_text(runner, before);
	runner_number(runner, number);
	line(runner, after, "", "");
}

static void timestamp(const struct runner *runner)
{
	number_line(runner, "m-lap-us-", runner->config->microseconds(), "");
}

/** Return the next word of a command and end it with 0, or NULL. */
static char *next_word(char **rest)
{
	char *word = *rest;
	char *end;

	while (*word == ' ') {
		word++;
	}
	if (*word == '\0') {
		return NULL;
	}
	for (end = word; *end != ' ' && *end != '\0'; end++) {
	}
	*rest = *end == '\0' ? end : end + 1;
	*end = '\0';
	return word;
}

/** Return whether a word is a number up to MAX_NUMBER. */
static bool parse_number(const char *word, uint32_t *number)
{
	*number = 0;
	for (const char *at = word; *at != '\0'; at++) {
		if (*at < '0' || *at > '9' || *number > MAX_NUMBER / 10) {
			return false;
		}
		*number = *number * 10 + (uint32_t)(*at - '0');
	}
	return *word != '\0';
}

/** Return the value of a hexadecimal digit, or -1. */
static int digit(char character)
{
	if (character >= '0' && character <= '9') {
		return character - '0';
	}
	if (character >= 'a' && character <= 'f') {
		return character - 'a' + 10;
	}
	if (character >= 'A' && character <= 'F') {
		return character - 'A' + 10;
	}
	return -1;
}

static void print_buffer(const struct runner *runner)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < runner->loaded; i++) {
		runner_text(runner, i % BYTES_PER_LINE == 0 ? "m-buffer-" : "-");
		runner->config->put(digits[runner->config->buffer[i] >> 4]);
		runner->config->put(digits[runner->config->buffer[i] & 15]);
		if ((i + 1) % BYTES_PER_LINE == 0 || i + 1 == runner->loaded) {
			runner_text(runner, "\r\n");
		}
	}
}

static void begin_load(struct runner *runner, const char *word)
{
	uint32_t size;

	runner->expected = 0;
	runner->loaded = 0;
	if (word == NULL) {
		line(runner, "e-[Command 'db load' requires the number of bytes]", "", "");
	} else if (!parse_number(word, &size) || size == 0) {
		line(runner, "e-[Invalid number of bytes: ", word, "]");
	} else if (size > runner->config->capacity) {
		number_line(runner, "e-[The buffer has ", runner->config->capacity, " bytes]");
	} else {
		runner->expected = size;
		number_line(runner, "m-[Expecting ", size, " bytes]");
	}
}

static void load_bytes(struct runner *runner, const char *hex)
{
	if (strlen(hex) % 2 != 0) {
		line(runner, "e-[Odd number of hexadecimal digits]", "", "");
		return;
	}
	if (runner->loaded == runner->expected) {
		line(runner, "e-[Bytes without 'db load']", "", "");
		return;
	}
	for (size_t i = 0; hex[i] != '\0'; i++) {
		if (digit(hex[i]) < 0) {
			line(runner, "e-[Invalid hexadecimal digits: ", hex, "]");
			return;
		}
	}
	for (; *hex != '\0' && runner->loaded < runner->expected; hex += 2) {
		runner->config->buffer[runner->loaded++] =
			(uint8_t)(digit(hex[0]) * 16 + digit(hex[1]));
	}
	if (runner->loaded == runner->expected) {
		line(runner, "m-load-done", "", "");
	}
}

static void command_db(struct runner *runner, char *rest)
{
	const char *word = next_word(&rest);

	if (word == NULL) {
		line(runner, "e-[Command 'db' requires a subcommand]", "", "");
	} else if (strcmp(word, "load") == 0) {
		begin_load(runner, next_word(&rest));
	} else if (strcmp(word, "print") == 0) {
		print_buffer(runner);
	} else {
		load_bytes(runner, word);
	}
}

static void results(const struct runner *runner)
{
	runner_text(runner, "m-results-[");
	runner->config->results();
	line(runner, "]", "", "");
}

/** Run the model; returns 0 or the first negative errno. */
static int repeat(const struct runner *runner, uint32_t count)
{
	int rc = 0;

	while (rc == 0 && count-- > 0) {
		rc = runner->config->infer();
	}
	return rc;
}

static void infer(const struct runner *runner, uint32_t count, uint32_t warmups)
{
	int rc = runner->config->load(runner->config->buffer, runner->loaded);

	if (rc != 0) {
		number_line(runner, "e-[The input does not fit the model: ", runner->loaded,
			    " bytes]");
		return;
	}
	number_line(runner, "m-warmup-start-", warmups, "");
	rc = repeat(runner, warmups);
	line(runner, "m-warmup-done", "", "");
	if (rc == 0) {
		number_line(runner, "m-infer-start-", count, "");
		timestamp(runner);
		rc = repeat(runner, count);
		timestamp(runner);
	}
	if (rc != 0) {
		number_line(runner, "e-[Inference failed: errno ", (uint64_t)-rc, "]");
		return;
	}
	line(runner, "m-infer-done", "", "");
	results(runner);
}

static void command_infer(const struct runner *runner, char *rest)
{
	const char *word = next_word(&rest);
	uint32_t count = 1;
	uint32_t warmups = DEFAULT_WARMUPS;

	if (word != NULL && (!parse_number(word, &count) || count == 0)) {
		line(runner, "e-[Inference iterations must be >0]", "", "");
		return;
	}
	word = word == NULL ? NULL : next_word(&rest);
	if (word != NULL && !parse_number(word, &warmups)) {
		line(runner, "e-[Inference warmup must be >=0]", "", "");
		return;
	}
	infer(runner, count, warmups);
}

static void execute(struct runner *runner, char *rest)
{
	const char *word = next_word(&rest);

	if (word == NULL) {
		return;
	}
	if (strcmp(word, "name") == 0) {
		line(runner, "m-name-dut-[", runner->config->vendor, "]");
	} else if (strcmp(word, "timestamp") == 0) {
		timestamp(runner);
	} else if (strcmp(word, "profile") == 0) {
		line(runner, "m-profile-[ULPMark for tinyML Firmware V0.0.1]", "", "");
		line(runner, "m-model-[", runner->config->model, "]");
	} else if (strcmp(word, "help") == 0) {
		line(runner, "name, timestamp, profile, help, results, infer N [WARMUPS],", "", "");
		line(runner, "db load N, db HEX, db print", "", "");
	} else if (strcmp(word, "db") == 0) {
		command_db(runner, rest);
	} else if (strcmp(word, "infer") == 0) {
		command_infer(runner, rest);
	} else if (strcmp(word, "results") == 0) {
		results(runner);
	} else {
		line(runner, "e-[Unknown command: ", word, "]");
	}
}

void runner_start(struct runner *runner)
{
	line(runner, "m-timestamp-mode-performance", "", "");
	timestamp(runner);
	line(runner, "m-init-done", "", "");
	line(runner, "m-ready", "", "");
}

void runner_receive(struct runner *runner, char character)
{
	if (character == '\r' || character == '\n') {
		return; /* of a terminal */
	}
	if (character != '%') {
		if (runner->length < RUNNER_COMMAND_SIZE) {
			runner->command[runner->length++] = character;
		} else {
			runner->too_long = true;
		}
		return;
	}
	runner->command[runner->length] = '\0';
	if (runner->too_long) {
		line(runner, "e-[The command is too long]", "", "");
	} else {
		execute(runner, runner->command);
	}
	runner->length = 0;
	runner->too_long = false;
	line(runner, "m-ready", "", "");
}
