/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The file format of bundles: a model that is replaced in the field.
 *
 * docs/contributing/bundle-format.md describes each field. All numbers are little-endian. The file
 * is a header of @ref OPWEST_BUNDLE_HEADER_SIZE bytes, the image, the bill of materials, and after
 * the signed part a block of signatures.
 */
#ifndef OPWEST_BUNDLE_FORMAT_H_
#define OPWEST_BUNDLE_FORMAT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The first bytes of a bundle: "OPWB". */
#define OPWEST_BUNDLE_MAGIC            0x4257504fU
/** The first bytes of the signatures: "OPWS". */
#define OPWEST_BUNDLE_SIGNATURES_MAGIC 0x5357504fU
/** The version of the format. */
#define OPWEST_BUNDLE_FORMAT_VERSION   1U
/** Bytes of the header. */
#define OPWEST_BUNDLE_HEADER_SIZE      256U
/** The alignment of the image in the file, bytes: also that of slots. */
#define OPWEST_BUNDLE_IMAGE_ALIGN      64U
/** Bytes before the first signature: magic, count. */
#define OPWEST_BUNDLE_SIGNATURES_SIZE  8U
/** Bytes of a signature: key, algorithm, size, value. */
#define OPWEST_BUNDLE_SIGNATURE_SIZE   80U
/** The largest number of signatures. */
#define OPWEST_BUNDLE_MOST_SIGNATURES  4U
/** Bytes of a model's name with its final NUL. */
#define OPWEST_BUNDLE_NAME_SIZE        48U
/** Bytes that identify a key: the first ones of the SHA-512 of the public key. */
#define OPWEST_BUNDLE_KEY_ID_SIZE      8U

/** The kinds of images. */
enum opwest_bundle_kind {
	/** Linked at the address of its slot: executed in place. */
	OPWEST_BUNDLE_LINKED = 0,
	/** A relocatable ELF file that Zephyr's LLEXT loads. */
	OPWEST_BUNDLE_LLEXT = 1,
};

/** The algorithms of signatures. */
enum opwest_bundle_algorithm {
	/** Ed25519 (RFC 8032, without a context) over the signed part. */
	OPWEST_BUNDLE_ED25519 = 1,
};

/**
 * @name Capabilities of processors
 *
 * A bundle lists those that its code requires; the firmware lists those of its processor.
 * @{
 */
#define OPWEST_BUNDLE_CPU_ARMV6M        0x00000001U
#define OPWEST_BUNDLE_CPU_ARMV7M        0x00000002U
#define OPWEST_BUNDLE_CPU_ARMV8M_BASE   0x00000004U
#define OPWEST_BUNDLE_CPU_ARMV8M_MAIN   0x00000008U
#define OPWEST_BUNDLE_CPU_ARMV81M_MAIN  0x00000010U
#define OPWEST_BUNDLE_CPU_ARM_DSP       0x00000020U
#define OPWEST_BUNDLE_CPU_ARM_FP_HALF   0x00000040U
#define OPWEST_BUNDLE_CPU_ARM_FP_SINGLE 0x00000080U
#define OPWEST_BUNDLE_CPU_ARM_FP_DOUBLE 0x00000100U
#define OPWEST_BUNDLE_CPU_ARM_MVE       0x00000200U
#define OPWEST_BUNDLE_CPU_ARM_MVE_FP    0x00000400U
#define OPWEST_BUNDLE_CPU_RISCV_E       0x00001000U
#define OPWEST_BUNDLE_CPU_RISCV_M       0x00002000U
#define OPWEST_BUNDLE_CPU_RISCV_A       0x00004000U
#define OPWEST_BUNDLE_CPU_RISCV_F       0x00008000U
#define OPWEST_BUNDLE_CPU_RISCV_D       0x00010000U
#define OPWEST_BUNDLE_CPU_RISCV_C       0x00020000U
#define OPWEST_BUNDLE_CPU_RISCV_B       0x00040000U
#define OPWEST_BUNDLE_CPU_RISCV_V       0x00080000U
/** An extension that has no bit of its own: no firmware has it. */
#define OPWEST_BUNDLE_CPU_OTHER         0x80000000U
/** @} */

/**
 * @name Options that change a layout or an interface between firmware and image
 * @{
 */
/** Run calls the firmware after each step: see opwest_bundle_observer. */
#define OPWEST_BUNDLE_LAYOUT_STEPS       0x0001U
/** Enumerations are as small as possible (Arm: -fshort-enums). */
#define OPWEST_BUNDLE_LAYOUT_SHORT_ENUMS 0x0002U
/** @} */

/** What the code of a bundle requires of the firmware: the ABI record. */
struct opwest_bundle_abi {
	/** The number of the machine in ELF files (e_machine). */
	uint16_t machine;
	/** Bytes. */
	uint8_t pointer_size;
	/** enum opwest_float_abi of opwest/model.h. */
	uint8_t float_abi;
	/** 1 for big-endian machines, else 0. */
	uint8_t big_endian;
	uint8_t reserved;
	/** OPWEST_METADATA_VERSION of the image. */
	uint16_t metadata_version;
	/** OPWEST_HOST_VERSION of the image. */
	uint16_t host_version;
	/** OPWEST_BUNDLE_LAYOUT_* */
	uint16_t layout;
	/** OPWEST_BUNDLE_CPU_* */
	uint32_t cpu;
	/** sizeof(struct opwest_slot); 0 for a model without devices. */
	uint16_t slot_size;
	uint16_t device_count;
	uint16_t input_count;
	uint16_t output_count;
	/** Bytes: the workspace, without the memory of its pools. */
	uint32_t workspace_size;
	uint32_t workspace_align;
	/** Bytes: the pools of the workspace one after another, each at its alignment. */
	uint32_t pools_size;
	/** The largest alignment of a pool, bytes. */
	uint32_t pools_align;
	/** Bytes: the sums of the tensors. */
	uint32_t inputs_size;
	uint32_t outputs_size;
};

/** The header of a bundle. */
struct opwest_bundle_header {
	/** Bytes of the signed part; the signatures follow. */
	uint32_t length;
	/** enum opwest_bundle_kind */
	uint32_t kind;
	/** The address of the first byte of the file; 0 for OPWEST_BUNDLE_LLEXT. */
	uint64_t slot_address;
	/** Offsets in the file and sizes, bytes. */
	uint32_t image_offset;
	uint32_t image_size;
	/** The offset of struct opwest_bundle_descriptor in the file; 0 for OPWEST_BUNDLE_LLEXT. */
	uint32_t descriptor_offset;
	uint32_t sbom_offset;
	uint32_t sbom_size;
	/** The version of the model: see OPWEST_BUNDLE_VERSION(). */
	uint32_t version;
	/** The hash of the names, types and quantisation of inputs and outputs. */
	uint64_t interface_hash;
	/** SHA-256 of everything that defines the behaviour of the model. */
	uint8_t model_hash[32];
	/** NUL-terminated. */
	char name[OPWEST_BUNDLE_NAME_SIZE];
	struct opwest_bundle_abi abi;
};

/** A version: comparisons of the numbers are those of versions. */
#define OPWEST_BUNDLE_VERSION(major, minor, patch)                                                 \
	(((uint32_t)(major) << 24) | ((uint32_t)(minor) << 16) | (uint32_t)(patch))

/** The reason why a bundle is refused. */
enum opwest_bundle_fault {
	OPWEST_BUNDLE_GOOD = 0,
	/** No bundle: wrong magic, or an erased slot. */
	OPWEST_BUNDLE_NO_BUNDLE = 1,
	/** A version of the format that this firmware does not read. */
	OPWEST_BUNDLE_FORMAT = 2,
	/** A damaged header: an offset, a size or reserved bytes. */
	OPWEST_BUNDLE_HEADER = 3,
	/** It is larger than its slot, or than the received bytes. */
	OPWEST_BUNDLE_SIZE = 4,
	/** The content of the slot differs from what was sent. */
	OPWEST_BUNDLE_READ_BACK = 5,
	/** No signature by a key of this firmware, or a damaged one. */
	OPWEST_BUNDLE_SIGNATURE = 6,
	/** It is linked for another address. */
	OPWEST_BUNDLE_SLOT = 7,
	/** Another machine, pointer size or byte order. */
	OPWEST_BUNDLE_MACHINE = 8,
	OPWEST_BUNDLE_FLOAT_ABI = 9,
	/** It requires capabilities that the processor does not have. */
	OPWEST_BUNDLE_CPU = 10,
	/** The version of the metadata, of the host's functions, or an option of the layout. */
	OPWEST_BUNDLE_LAYOUT = 11,
	/** The descriptor and the header differ, or a pointer is outside of the image. */
	OPWEST_BUNDLE_DESCRIPTOR = 12,
	/** A session has not enough memory. */
	OPWEST_BUNDLE_MEMORY = 13,
	/** The device context of the firmware has other devices. */
	OPWEST_BUNDLE_DEVICES = 14,
	/** An older version than the firmware accepts. */
	OPWEST_BUNDLE_DOWNGRADE = 15,
	/** open or run of the model failed. */
	OPWEST_BUNDLE_RUN = 16,
	/** A golden vector differs. */
	OPWEST_BUNDLE_VECTOR = 17,
	/** It was reset, or rolled back, before it was confirmed. */
	OPWEST_BUNDLE_UNCONFIRMED = 18,
	/** A kind of image that this firmware cannot load. */
	OPWEST_BUNDLE_KIND = 19,
	/** The flash or the records failed. */
	OPWEST_BUNDLE_STORAGE = 20,
	/** It has no golden vector. */
	OPWEST_BUNDLE_NO_VECTOR = 21,
	/** It was started as often as the limit allows without opwest_bundles_healthy(). */
	OPWEST_BUNDLE_CRASHES = 22,
};

/** The result of a check. */
struct opwest_bundle_verdict {
	/** enum opwest_bundle_fault */
	uint8_t fault;
	/**
	 * The negative errno; the index of the device, vector or session (-1: the memory of the
	 * trial); or the offset of the field in the file, for faults of the ABI record and of the
	 * descriptor.
	 */
	int32_t detail;
	/**
	 * What the bundle has, and what the firmware has or accepts; 0 where it does not apply. For
	 * a golden vector: the output that differs, and its first different element.
	 */
	uint64_t found;
	uint64_t expected;
};

/**
 * @brief Read the header of a bundle, and check that every part is within the bundle.
 *
 * The content need not be a bundle. The function reads only the first @p size bytes.
 *
 * @param data   The file.
 * @param size   The number of readable bytes.
 * @param header Filled in; zeros if it is damaged.
 *
 * @return OPWEST_BUNDLE_GOOD, NO_BUNDLE, FORMAT, HEADER or SIZE
 */
enum opwest_bundle_fault opwest_bundle_parse(const uint8_t *data, size_t size,
					     struct opwest_bundle_header *header);

/**
 * @brief Return the size of the whole file, with its signatures.
 *
 * @param data   The file.
 * @param size   The number of readable bytes.
 * @param header The header of opwest_bundle_parse().
 *
 * @return Bytes; 0 if the signatures are damaged or not within @p size
 */
size_t opwest_bundle_total(const uint8_t *data, size_t size,
			   const struct opwest_bundle_header *header);

/**
 * @brief Compare the ABI record with this firmware's own.
 *
 * @param header  The header.
 * @param verdict Set to the fault with what was found and expected.
 *
 * @retval true  They agree.
 * @retval false They differ.
 */
bool opwest_bundle_abi_agrees(const struct opwest_bundle_header *header,
			      struct opwest_bundle_verdict *verdict);

/** A public key of Ed25519. */
struct opwest_bundle_key {
	uint8_t bytes[32];
};

/**
 * @brief Verify that one of the signatures of a bundle is valid for one of the keys.
 *
 * The only function that verifies signatures.
 *
 * @param data   The file.
 * @param size   The number of readable bytes.
 * @param header The header of opwest_bundle_parse().
 * @param keys   The keys.
 * @param count  Their number.
 *
 * @retval true  It is valid.
 * @retval false There is no valid signature by any of these keys.
 */
bool opwest_bundle_signed(const uint8_t *data, size_t size,
			  const struct opwest_bundle_header *header,
			  const struct opwest_bundle_key *keys, size_t count);

/**
 * @brief Return the name of a fault.
 *
 * @param fault A value of enum opwest_bundle_fault.
 *
 * @return Its name ("signature"), or NULL if there is no such fault
 */
const char *opwest_bundle_fault_name(uint8_t fault);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLE_FORMAT_H_ */
