/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload of Vela's custom operator: little-endian words, the first of which is its name, then
 * actions of the vendor's driver. That driver finds some faults only after it has begun to run the
 * payload, and does not check the lengths. It would start all command streams at once, so there
 * must be exactly one.
 */
#include <stddef.h>

#include "ethos_u_payload.h"

#define WORD      4U
#define ALIGNMENT 16U

#define PAYLOAD_NAME   0x31504f43U /* "COP1" */
#define ACTION_CONFIG  1U
#define ACTION_STREAM  2U
#define ACTION_NOTHING 5U

/* A command has 10 bits of opcode, 2 bits for its length, and a parameter of 16 bits. */
#define COMMAND_CODE   0x3ffU
#define COMMAND_LENGTH 0xc000U
#define COMMAND_LONG   0x4000U /* a word of data follows */
#define COMMAND_STOP   0U

/* A payload that is being read. */
struct payload {
	const uint8_t *data;
	uint32_t words;
	uint32_t configs;
	uint32_t streams;
};

static uint32_t word_at(const struct payload *payload, uint32_t index)
{
	const uint8_t *const byte = &payload->data[(size_t)index * WORD];

	return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 |
	       (uint32_t)byte[3] << 24;
}

/* Returns the difference between the NPU and the one that a payload was made for, or NULL. */
static const char *compare(uint32_t config, uint32_t id, const struct ethos_u_npu *npu)
{
	if (config >> 28 != npu->product) {
		return "it is for another product";
	}
	if ((config & 0xfU) != npu->macs) {
		return "it is for an NPU with another number of MACs";
	}
	/* The vendor's driver does not compare it for the Ethos-U85. */
	if (npu->product != ETHOS_U85 && (config >> 4 & 0xfU) != npu->stream_version) {
		return "its command stream has another version than the NPU's";
	}
	if ((config >> 27 & 1U) != 0U && !npu->custom_dma) {
		return "it is for an NPU with a custom DMA";
	}
	if (id >> 28 != npu->arch_major || (id >> 20 & 0xffU) > npu->arch_minor) {
		return "it is for another version of the architecture";
	}
	return NULL;
}

/* Returns the fault in the commands from word `i` to word `end`, or NULL. */
static const char *walk(const struct payload *payload, uint32_t i, uint32_t end)
{
	while (i < end) {
		const uint32_t command = word_at(payload, i);
		const uint32_t length = (command & COMMAND_LENGTH) == COMMAND_LONG ? 2U : 1U;

		if ((command & COMMAND_LENGTH & ~COMMAND_LONG) != 0U) {
			return "its command stream has a damaged command";
		}
		if (length > end - i) {
			break;
		}
		i += length;
		if ((command & (COMMAND_CODE | COMMAND_LENGTH)) == COMMAND_STOP) {
			return i == end ? NULL : "its command stream stops before its end";
		}
	}
	return "its command stream does not stop";
}

static const char *read_stream(struct payload *payload, uint32_t i, uint32_t length)
{
	payload->streams++;
	if (length == 0U) {
		return "its command stream is empty";
	}
	if (((uintptr_t)payload->data + (uintptr_t)i * WORD) % ALIGNMENT != 0U) {
		return "its command stream is not aligned to 16 bytes";
	}
	return walk(payload, i, i + length);
}

/* Reads the action at word `*i`, and moves to the next one. */
static const char *read_action(struct payload *payload, uint32_t *i, const struct ethos_u_npu *npu)
{
	const uint32_t word = word_at(payload, *i);
	const uint32_t first = *i + 1U;
	uint32_t length = 0U;

	switch (word & 0xffU) {
	case ACTION_NOTHING:
		break;
	case ACTION_CONFIG:
		length = 2U;
		break;
	case ACTION_STREAM:
		length = (word & 0xff00U) << 8 | word >> 16;
		break;
	default:
		return "it has an unknown action";
	}
	if (length > payload->words - first) {
		return "it is truncated";
	}
	*i = first + length;
	if ((word & 0xffU) == ACTION_CONFIG) {
		payload->configs++;
		return compare(word_at(payload, first), word_at(payload, first + 1U), npu);
	}
	return (word & 0xffU) == ACTION_STREAM ? read_stream(payload, first, length) : NULL;
}

const char *ethos_u_payload_fault(const uint8_t *data, uint32_t size, const struct ethos_u_npu *npu)
{
	struct payload payload = {.data = data, .words = size / WORD};
	const char *fault = NULL;

	if (data == NULL || size < WORD || word_at(&payload, 0) != PAYLOAD_NAME) {
		return "it is not a custom operator payload (COP1)";
	}
	if (size % WORD != 0U) {
		return "it is truncated: its size is not a multiple of 4 bytes";
	}
	for (uint32_t i = 1; i < payload.words && fault == NULL;) {
		fault = read_action(&payload, &i, npu);
	}
	if (fault == NULL && payload.streams != 1U) {
		fault = "it does not have one command stream";
	}
	/* Without one, the commands may be for any NPU. */
	if (fault == NULL && payload.configs == 0U) {
		fault = "it has no configuration of the NPU";
	}
	return fault;
}
