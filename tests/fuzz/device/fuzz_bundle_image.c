/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that a trusted key signed, with any content: the checks of the descriptor read nothing
 * outside of the image, and what they accept is inside of it. Nothing is executed.
 *
 * The input: the number of a bundle, the alignment of the session's memory, then changes of 8 bytes:
 * an offset in the file, a kind, and a value.
 */
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#include "bundle_internal.h"
#include "simulated.h"

#include "fuzz_bundle_images.h"

#define MEMORY 4096U
#define CHANGE 8U

static const struct device handles[] = {{.name = "a"}, {.name = "b"}};
static const struct opwest_bundle_device devices[] = {
	{.type = "npu", .name = "second", .dev = &handles[0]},
	{.type = "npu", .name = NULL, .dev = &handles[1]},
};
static const struct opwest_host_devices host_devices;
static const struct opwest_host host = {.devices = &host_devices};
static const struct opwest_bundles_config config = {
	.host = &host, .devices = devices, .device_count = 2U};

static volatile uint32_t sum;

static void read_all(const void *data, uint32_t size)
{
	for (uint32_t i = 0U; i < size; i++) {
		sum += ((const uint8_t *)data)[i];
	}
}

/* Read everything that a trial reads. */
static void read_image(const struct opwest_bundle_descriptor *descriptor)
{
	const struct opwest_details *const details = descriptor->details;
	const struct opwest_model *const model = details->model;

	for (uint32_t v = 0U; v < descriptor->vector_count; v++) {
		for (uint16_t i = 0U; i < model->input_count; i++) {
			read_all(descriptor->vectors[v].inputs[i], model->inputs[i].size);
		}
		for (uint16_t i = 0U; i < model->output_count; i++) {
			read_all(descriptor->vectors[v].outputs[i], model->outputs[i].size);
		}
	}
	read_all(descriptor->tolerances, model->output_count * sizeof(descriptor->tolerances[0]));
	for (uint32_t i = 0U; i < descriptor->step_count; i++) {
		const struct opwest_bundle_step *const step = &descriptor->steps[i];

		read_all(step->expected, details->buffers[step->buffer].tensor.size);
		sum += opwest_model_step_name(model, step->step)[0];
	}
	sum += strlen(model->name);
}

/* Write everything that a run can write. */
static void place(const struct opwest_bundle_descriptor *descriptor,
		  const struct opwest_bundle_header *header, uint32_t shift, uint32_t size)
{
	const struct opwest_model *const model = descriptor->details->model;
	uint8_t *const memory = malloc(shift + size + 1U);
	const struct opwest_bundle_memory given = {.memory = &memory[shift], .size = size};
	struct opwest_bundle_placement placement;
	struct opwest_bundle_verdict verdict;

	if (opwest_bundle_place(&given, descriptor, true, &placement, &verdict)) {
		memset(placement.workspace, 1, header->abi.workspace_size);
		for (uint16_t i = 0U; i < model->pool_count; i++) {
			memset(placement.pools[i], 1, model->pools[i].size);
		}
		for (uint16_t i = 0U; i < model->output_count; i++) {
			memset(placement.outputs[i], 1, model->outputs[i].size);
		}
	}
	free(memory);
}

static void examine(const struct opwest_bundle_descriptor *descriptor,
		    const struct opwest_bundle_extent *extent,
		    const struct opwest_bundle_header *header, uint8_t shift)
{
	struct opwest_bundle_verdict verdict;
	const struct device *assigned[OPWEST_BUNDLE_MOST_DEVICES];
	const uint32_t needs = opwest_bundles_needs(header);

	if (!opwest_bundle_describes(descriptor, extent, header, &verdict)) {
		return;
	}
	read_image(descriptor);
	(void)opwest_bundle_assign(&config, descriptor->details->model, assigned, &verdict);
	place(descriptor, header, shift, MEMORY);
	if (needs <= MEMORY) {
		place(descriptor, header, shift, needs);
	}
}

static void change(uint8_t *slot, uint32_t size, const uint8_t *bytes)
{
	uint16_t at;
	uint32_t value;
	uint64_t word;

	memcpy(&at, bytes, sizeof(at));
	memcpy(&value, &bytes[4], sizeof(value));
	at = (uint16_t)(at % (size - sizeof(word)));
	switch (bytes[2] % 6U) {
	case 0U:
		slot[at] = (uint8_t)value;
		break;
	case 1U:
		memcpy(&slot[at], &value, sizeof(uint16_t));
		break;
	case 2U:
		memcpy(&slot[at], &value, sizeof(value));
		break;
	case 3U: /* a pointer into the file, aligned as those of tables */
		word = (uintptr_t)slot + value % (size + 64U);
		memcpy(&slot[at & ~7U], &word, sizeof(word));
		break;
	case 4U: /* another pointer of the file */
		memmove(&slot[at & ~7U], &slot[value % (size - sizeof(word)) & ~7U], sizeof(word));
		break;
	default:
		word = (uint64_t)(int64_t)(int32_t)value;
		memcpy(&slot[at & ~7U], &word, sizeof(word));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *const slot = simulated_memory(0U);
	struct opwest_bundle_header header;
	struct opwest_bundle_extent extent;

	if (size < 2U) {
		return 0;
	}
	if (simulated_storage.slot_count == 0U) {
		simulated_open(2U, 4U, 0xffU);
	}

	const size_t index = data[0] % (sizeof(fuzz_bundle_sizes) / sizeof(fuzz_bundle_sizes[0]));

	memcpy(slot, fuzz_bundles[index], fuzz_bundle_sizes[index]);
	for (size_t at = 2U; at + CHANGE <= size; at += CHANGE) {
		change(slot, fuzz_bundle_sizes[index], &data[at]);
	}
	if (opwest_bundle_parse(slot, fuzz_bundle_sizes[index], &header) != OPWEST_BUNDLE_GOOD ||
	    header.kind != OPWEST_BUNDLE_LINKED) {
		return 0;
	}
	ASAN_POISON_MEMORY_REGION(slot, header.image_offset);
	ASAN_POISON_MEMORY_REGION(&slot[header.image_offset + header.image_size],
				  SLOT_SIZE - header.image_offset - header.image_size);
	extent.begin = (uintptr_t)&slot[header.image_offset];
	extent.end = extent.begin + header.image_size;
	examine((const void *)&slot[header.descriptor_offset], &extent, &header, data[1] & 63U);
	ASAN_UNPOISON_MEMORY_REGION(slot, SLOT_SIZE);
	return 0;
}
