/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The offsets of fields in a file, bytes: docs/contributing/bundle-format.md.
 */
#ifndef OPWEST_BUNDLE_FORMAT_INTERNAL_H_
#define OPWEST_BUNDLE_FORMAT_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle_format.h>

#define OPWEST_BUNDLE_AT_FORMAT            4U
#define OPWEST_BUNDLE_AT_HEADER_SIZE       6U
#define OPWEST_BUNDLE_AT_LENGTH            8U
#define OPWEST_BUNDLE_AT_KIND              12U
#define OPWEST_BUNDLE_AT_SLOT_ADDRESS      16U
#define OPWEST_BUNDLE_AT_IMAGE_OFFSET      24U
#define OPWEST_BUNDLE_AT_IMAGE_SIZE        28U
#define OPWEST_BUNDLE_AT_DESCRIPTOR_OFFSET 32U
#define OPWEST_BUNDLE_AT_SBOM_OFFSET       36U
#define OPWEST_BUNDLE_AT_SBOM_SIZE         40U
#define OPWEST_BUNDLE_AT_VERSION           44U
#define OPWEST_BUNDLE_AT_INTERFACE_HASH    48U
#define OPWEST_BUNDLE_AT_MODEL_HASH        56U
#define OPWEST_BUNDLE_AT_NAME              88U
#define OPWEST_BUNDLE_AT_MACHINE           136U
#define OPWEST_BUNDLE_AT_POINTER_SIZE      138U
#define OPWEST_BUNDLE_AT_FLOAT_ABI         139U
#define OPWEST_BUNDLE_AT_BIG_ENDIAN        140U
#define OPWEST_BUNDLE_AT_ABI_RESERVED      141U
#define OPWEST_BUNDLE_AT_METADATA_VERSION  142U
#define OPWEST_BUNDLE_AT_HOST_VERSION      144U
#define OPWEST_BUNDLE_AT_LAYOUT            146U
#define OPWEST_BUNDLE_AT_CPU               148U
#define OPWEST_BUNDLE_AT_SLOT_SIZE         152U
#define OPWEST_BUNDLE_AT_DEVICE_COUNT      154U
#define OPWEST_BUNDLE_AT_INPUT_COUNT       156U
#define OPWEST_BUNDLE_AT_OUTPUT_COUNT      158U
#define OPWEST_BUNDLE_AT_WORKSPACE_SIZE    160U
#define OPWEST_BUNDLE_AT_WORKSPACE_ALIGN   164U
#define OPWEST_BUNDLE_AT_POOLS_SIZE        168U
#define OPWEST_BUNDLE_AT_POOLS_ALIGN       172U
#define OPWEST_BUNDLE_AT_INPUTS_SIZE       176U
#define OPWEST_BUNDLE_AT_OUTPUTS_SIZE      180U
#define OPWEST_BUNDLE_AT_RESERVED          184U

/* In the block of signatures, and in each signature. */
#define OPWEST_BUNDLE_AT_SIGNATURE_COUNT     4U
#define OPWEST_BUNDLE_AT_SIGNATURES_RESERVED 6U
#define OPWEST_BUNDLE_AT_ALGORITHM           8U
#define OPWEST_BUNDLE_AT_VALUE_SIZE          10U
#define OPWEST_BUNDLE_AT_SIGNATURE_RESERVED  12U
#define OPWEST_BUNDLE_AT_VALUE               16U

/** Bytes of an Ed25519 signature. */
#define OPWEST_BUNDLE_VALUE_SIZE 64U

/** @brief Read a little-endian number of 16 bits. */
static inline uint16_t opwest_bundle_read16(const uint8_t *data)
{
	return (uint16_t)(data[0] | (uint16_t)data[1] << 8);
}

/** @brief Return whether a number is a power of two. */
static inline bool opwest_bundle_is_power(uint32_t value)
{
	return value != 0U && (value & (value - 1U)) == 0U;
}

/** @brief Return a signature of a file with a valid block of signatures. */
static inline const uint8_t *opwest_bundle_signature(const uint8_t *data,
						     const struct opwest_bundle_header *header,
						     size_t index)
{
	return &data[header->length + OPWEST_BUNDLE_SIGNATURES_SIZE +
		     index * OPWEST_BUNDLE_SIGNATURE_SIZE];
}

#endif /* OPWEST_BUNDLE_FORMAT_INTERNAL_H_ */
