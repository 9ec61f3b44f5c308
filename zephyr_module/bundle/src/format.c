/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "format_internal.h"

/* The smallest alignment of a descriptor. */
#define DESCRIPTOR_ALIGN 4U
#define LENGTH_ALIGN     16U

static uint32_t read32(const uint8_t *data)
{
	return opwest_bundle_read16(data) | (uint32_t)opwest_bundle_read16(&data[2]) << 16;
}

static uint64_t read64(const uint8_t *data)
{
	return read32(data) | (uint64_t)read32(&data[4]) << 32;
}

static bool are_zero(const uint8_t *data, size_t size)
{
	for (size_t i = 0U; i < size; i++) {
		if (data[i] != 0U) {
			return false;
		}
	}
	return true;
}

static void read_abi(const uint8_t *data, struct opwest_bundle_abi *abi)
{
	abi->machine = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_MACHINE]);
	abi->pointer_size = data[OPWEST_BUNDLE_AT_POINTER_SIZE];
	abi->float_abi = data[OPWEST_BUNDLE_AT_FLOAT_ABI];
	abi->big_endian = data[OPWEST_BUNDLE_AT_BIG_ENDIAN];
	abi->reserved = data[OPWEST_BUNDLE_AT_ABI_RESERVED];
	abi->metadata_version = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_METADATA_VERSION]);
	abi->host_version = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_HOST_VERSION]);
	abi->layout = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_LAYOUT]);
	abi->cpu = read32(&data[OPWEST_BUNDLE_AT_CPU]);
	abi->slot_size = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_SLOT_SIZE]);
	abi->device_count = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_DEVICE_COUNT]);
	abi->input_count = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_INPUT_COUNT]);
	abi->output_count = opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_OUTPUT_COUNT]);
	abi->workspace_size = read32(&data[OPWEST_BUNDLE_AT_WORKSPACE_SIZE]);
	abi->workspace_align = read32(&data[OPWEST_BUNDLE_AT_WORKSPACE_ALIGN]);
	abi->pools_size = read32(&data[OPWEST_BUNDLE_AT_POOLS_SIZE]);
	abi->pools_align = read32(&data[OPWEST_BUNDLE_AT_POOLS_ALIGN]);
	abi->inputs_size = read32(&data[OPWEST_BUNDLE_AT_INPUTS_SIZE]);
	abi->outputs_size = read32(&data[OPWEST_BUNDLE_AT_OUTPUTS_SIZE]);
}

static void read_header(const uint8_t *data, struct opwest_bundle_header *header)
{
	header->length = read32(&data[OPWEST_BUNDLE_AT_LENGTH]);
	header->kind = read32(&data[OPWEST_BUNDLE_AT_KIND]);
	header->slot_address = read64(&data[OPWEST_BUNDLE_AT_SLOT_ADDRESS]);
	header->image_offset = read32(&data[OPWEST_BUNDLE_AT_IMAGE_OFFSET]);
	header->image_size = read32(&data[OPWEST_BUNDLE_AT_IMAGE_SIZE]);
	header->descriptor_offset = read32(&data[OPWEST_BUNDLE_AT_DESCRIPTOR_OFFSET]);
	header->sbom_offset = read32(&data[OPWEST_BUNDLE_AT_SBOM_OFFSET]);
	header->sbom_size = read32(&data[OPWEST_BUNDLE_AT_SBOM_SIZE]);
	header->version = read32(&data[OPWEST_BUNDLE_AT_VERSION]);
	header->interface_hash = read64(&data[OPWEST_BUNDLE_AT_INTERFACE_HASH]);
	memcpy(header->model_hash, &data[OPWEST_BUNDLE_AT_MODEL_HASH], sizeof(header->model_hash));
	memcpy(header->name, &data[OPWEST_BUNDLE_AT_NAME], sizeof(header->name));
	read_abi(data, &header->abi);
}

/* NUL-terminated, not empty, and zeros behind the first NUL. */
static bool is_name(const char *name)
{
	size_t length = 0U;

	while (length < OPWEST_BUNDLE_NAME_SIZE && name[length] != '\0') {
		length++;
	}
	return length > 0U && length < OPWEST_BUNDLE_NAME_SIZE &&
	       are_zero((const uint8_t *)&name[length], OPWEST_BUNDLE_NAME_SIZE - length);
}

static bool is_within(uint32_t offset, uint32_t size, uint32_t begin, uint32_t end)
{
	return offset >= begin && offset <= end && size <= end - offset;
}

/* The descriptor is checked with its size when it is read: the size is that of the processor. */
static bool places_image(const struct opwest_bundle_header *header)
{
	if (header->image_size == 0U || header->image_offset % OPWEST_BUNDLE_IMAGE_ALIGN != 0U ||
	    !is_within(header->image_offset, header->image_size, OPWEST_BUNDLE_HEADER_SIZE,
		       header->length)) {
		return false;
	}
	if (header->kind == OPWEST_BUNDLE_LLEXT) {
		return header->slot_address == 0U && header->descriptor_offset == 0U;
	}
	return header->kind == OPWEST_BUNDLE_LINKED &&
	       header->slot_address % OPWEST_BUNDLE_IMAGE_ALIGN == 0U &&
	       header->descriptor_offset % DESCRIPTOR_ALIGN == 0U &&
	       is_within(header->descriptor_offset, DESCRIPTOR_ALIGN, header->image_offset,
			 header->image_offset + header->image_size);
}

static bool is_sound(const uint8_t *data, const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_abi *const abi = &header->abi;

	return header->length % LENGTH_ALIGN == 0U && places_image(header) &&
	       is_within(header->sbom_offset, header->sbom_size,
			 header->image_offset + header->image_size, header->length) &&
	       is_name(header->name) && abi->big_endian <= 1U && abi->reserved == 0U &&
	       opwest_bundle_is_power(abi->workspace_align) &&
	       (opwest_bundle_is_power(abi->pools_align) ||
		(abi->pools_align == 0U && abi->pools_size == 0U)) &&
	       are_zero(&data[OPWEST_BUNDLE_AT_RESERVED],
			OPWEST_BUNDLE_HEADER_SIZE - OPWEST_BUNDLE_AT_RESERVED);
}

enum opwest_bundle_fault opwest_bundle_parse(const uint8_t *data, size_t size,
					     struct opwest_bundle_header *header)
{
	memset(header, 0, sizeof(*header));
	if (size < sizeof(uint32_t) || read32(data) != OPWEST_BUNDLE_MAGIC) {
		return OPWEST_BUNDLE_NO_BUNDLE;
	}
	if (size < OPWEST_BUNDLE_HEADER_SIZE) {
		return OPWEST_BUNDLE_SIZE;
	}
	if (opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_FORMAT]) != OPWEST_BUNDLE_FORMAT_VERSION) {
		return OPWEST_BUNDLE_FORMAT;
	}
	if (opwest_bundle_read16(&data[OPWEST_BUNDLE_AT_HEADER_SIZE]) !=
	    OPWEST_BUNDLE_HEADER_SIZE) {
		return OPWEST_BUNDLE_HEADER;
	}
	read_header(data, header);
	if (header->length < OPWEST_BUNDLE_HEADER_SIZE || !is_sound(data, header)) {
		memset(header, 0, sizeof(*header)); /* its name may have no end */
		return OPWEST_BUNDLE_HEADER;
	}
	return header->length > size ? OPWEST_BUNDLE_SIZE : OPWEST_BUNDLE_GOOD;
}

size_t opwest_bundle_total(const uint8_t *data, size_t size,
			   const struct opwest_bundle_header *header)
{
	if (header->length > size || size - header->length < OPWEST_BUNDLE_SIGNATURES_SIZE) {
		return 0U;
	}

	const uint8_t *const block = &data[header->length];
	const size_t count = opwest_bundle_read16(&block[OPWEST_BUNDLE_AT_SIGNATURE_COUNT]);
	const size_t bytes = OPWEST_BUNDLE_SIGNATURES_SIZE + count * OPWEST_BUNDLE_SIGNATURE_SIZE;

	if (read32(block) != OPWEST_BUNDLE_SIGNATURES_MAGIC || count == 0U ||
	    count > OPWEST_BUNDLE_MOST_SIGNATURES ||
	    opwest_bundle_read16(&block[OPWEST_BUNDLE_AT_SIGNATURES_RESERVED]) != 0U ||
	    size - header->length < bytes) {
		return 0U;
	}
	for (size_t i = 0U; i < count; i++) {
		const uint8_t *const signature = opwest_bundle_signature(data, header, i);

		if (read32(&signature[OPWEST_BUNDLE_AT_SIGNATURE_RESERVED]) != 0U) {
			return 0U;
		}
	}
	return header->length + bytes;
}
