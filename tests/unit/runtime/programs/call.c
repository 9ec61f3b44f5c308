/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls operators by name, one call per line of the input:
 *   OPERATOR DEVICE ARGUMENT...
 * DEVICE is 0 or 1. An argument is i:DTYPE:NUMBER, u:DTYPE:NUMBER (64 bits without sign), r:DTYPE:REAL,
 * in:DTYPE:SIZE:OFFSET or out:DTYPE:SIZE:OFFSET (from 64-byte alignment), in0:DTYPE:SIZE or out0:DTYPE:SIZE (NULL).
 * "nothing" as the first argument passes NULL for the arguments with the count that follows it.
 * Prints the result of opwest_call and the first 16 bytes of the last "out".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <calls.h>
#include <opwest/device_calls.h>

#define MOST 8U

static OPWEST_ALIGNED(64) uint8_t memory[MOST][256];

static struct opwest_value argument(char *word, uint8_t *own, const uint8_t **result)
{
	const char *const kind = strtok(word, ":");
	const uint8_t dtype = (uint8_t)strtoul(strtok(NULL, ":"), NULL, 10);
	const char *const number = strtok(NULL, ":");
	const char *const offset = strtok(NULL, ":");

	if (strcmp(kind, "i") == 0) {
		return opwest_integer(dtype, strtoll(number, NULL, 10));
	}
	if (strcmp(kind, "u") == 0) {
		return opwest_integer(dtype, (int64_t)strtoull(number, NULL, 10));
	}
	if (strcmp(kind, "r") == 0) {
		return opwest_real(dtype, strtod(number, NULL));
	}
	const size_t size = (size_t)strtoul(number, NULL, 10);

	if (strcmp(kind, "in0") == 0) {
		return opwest_in(dtype, NULL, size);
	}
	if (strcmp(kind, "out0") == 0) {
		return opwest_out(dtype, NULL, size);
	}
	uint8_t *const place = own + strtoul(offset, NULL, 10);

	if (strcmp(kind, "in") == 0) {
		return opwest_in(dtype, place, size);
	}
	*result = place;
	return opwest_out(dtype, place, size);
}

int main(void)
{
	static const struct device device = {"device", NULL, NULL, NULL};
	static const struct opwest_device info = {.name = "device"};
	static const struct opwest_device_set set = {
		.model = "calls", .devices = &info, .count = 1};
	static struct opwest_slot slot = OPWEST_SLOT_INIT;
	static struct opwest_status status = OPWEST_STATUS_INIT;
	static bool opened = true;
	static const struct opwest_call_device owned = {&set, &slot, &status, &opened, NULL, 0};
	char line[1024];

	slot.dev = &device;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		struct opwest_value values[MOST];
		char *words[MOST + 2U];
		size_t count = 0;
		const uint8_t *result = memory[0];

		line[strcspn(line, "\n")] = '\0';
		for (char *word = line; word != NULL && count < MOST + 2U; count++) {
			char *const blank = strchr(word, ' ');

			words[count] = word;
			if (blank != NULL) {
				*blank = '\0';
			}
			word = blank == NULL ? NULL : blank + 1;
		}
		memset(memory, 0, sizeof(memory));
		for (size_t i = 0; i < MOST; i++) {
			for (size_t j = 0; j < 256U; j++) {
				memory[i][j] = (uint8_t)(j + 1U);
			}
		}

		const struct opwest_entry *const entry = opwest_find(&calls_registry, words[0]);
		const struct opwest_call_device *const dev = words[1][0] == '1' ? &owned : NULL;
		int rc;

		if (count > 2U && strcmp(words[2], "nothing") == 0) {
			rc = opwest_call(entry, NULL, (size_t)strtoul(words[3], NULL, 10), dev);
		} else {
			for (size_t i = 2; i < count; i++) {
				values[i - 2U] = argument(words[i], memory[i - 2U], &result);
			}
			rc = opwest_call(entry, values, count - 2U, dev);
		}
		printf("%d ", rc);
		for (size_t i = 0; i < 16U; i++) {
			printf("%02x", result[i]);
		}
		printf("\n");
	}
	return 0;
}
