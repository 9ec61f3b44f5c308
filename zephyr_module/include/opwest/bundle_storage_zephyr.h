/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The storage of bundles on Zephyr: slots in flash partitions, records in NVS.
 *
 * Slots are partitions of memory-mapped flash, beside those of a bootloader:
 *
 *     OPWEST_BUNDLE_FLASH_DEFINE(models, bundle_records, bundle_slot0, bundle_slot1);
 *
 * names the node labels of the partition for the records and of those of the slots. The storage for
 * struct opwest_bundles_config is `&models.storage`. The records partition has at least two blocks
 * of erasure, and nothing else uses it.
 */
#ifndef OPWEST_BUNDLE_STORAGE_ZEPHYR_H_
#define OPWEST_BUNDLE_STORAGE_ZEPHYR_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/util.h>
#if __has_include(<zephyr/kvss/nvs.h>)
#include <zephyr/kvss/nvs.h>
#else /* before Zephyr 4.4 */
#include <zephyr/fs/nvs.h>
#endif

#include <opwest/bundle_format.h>
#include <opwest/bundle_port.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A part of a flash device. */
struct opwest_bundle_partition {
	const struct device *flash;
	off_t offset;
	/** Bytes. */
	uint32_t size;
};

/** The records: variable. */
struct opwest_bundle_records {
	/** @cond INTERNAL_HIDDEN */
	struct nvs_fs nvs;
	struct k_mutex lock;
	bool is_mounted;
	/** @endcond */
};

/** A storage in flash: constant. */
struct opwest_bundle_flash {
	struct opwest_bundle_storage storage;
	/** One for each slot. */
	const struct opwest_bundle_partition *partitions;
	struct opwest_bundle_partition records_partition;
	struct opwest_bundle_records *records;
};

/** The functions of a storage in flash. */
extern const struct opwest_bundle_storage_api opwest_bundle_flash_api;

/** @cond INTERNAL_HIDDEN */

/* From Zephyr 4.4 on, boards have partitions of the compatible zephyr,mapped-partition. */
#ifdef DT_MAPPED_PARTITION_EXISTS
#define Z_OPWEST_BUNDLE_MEM(_node) DT_MEM_FROM_PARTITION(_node)
#define Z_OPWEST_BUNDLE_MTD(_node) DT_MTD_FROM_PARTITION(_node)
#else
#define Z_OPWEST_BUNDLE_MEM(_node) DT_MEM_FROM_FIXED_PARTITION(_node)
#define Z_OPWEST_BUNDLE_MTD(_node) DT_MTD_FROM_FIXED_PARTITION(_node)
#endif

/*
 * The register of a partition is its offset in the flash, or its address if the flash passes its
 * address on by `ranges`, as Zephyr 4.4 requires. Only the partition of the records may be in flash
 * that is not memory-mapped.
 */
#define Z_OPWEST_BUNDLE_BASE(_node) DT_REG_ADDR(Z_OPWEST_BUNDLE_MEM(_node))
#define Z_OPWEST_BUNDLE_IN_MEM(_node)                                                              \
	(DT_NUM_RANGES(Z_OPWEST_BUNDLE_MEM(_node)) > 0 &&                                          \
			 DT_REG_ADDR(_node) >= Z_OPWEST_BUNDLE_BASE(_node)                         \
		 ? DT_REG_ADDR(_node) - Z_OPWEST_BUNDLE_BASE(_node)                                \
		 : DT_REG_ADDR(_node))
#define Z_OPWEST_BUNDLE_OFFSET(_node)                                                              \
	COND_CODE_1(DT_NODE_EXISTS(Z_OPWEST_BUNDLE_MEM(_node)), (Z_OPWEST_BUNDLE_IN_MEM(_node)),   \
		    (DT_REG_ADDR(_node)))
#define Z_OPWEST_BUNDLE_ADDRESS(_node) (Z_OPWEST_BUNDLE_BASE(_node) + Z_OPWEST_BUNDLE_OFFSET(_node))

/* Flash whose blocks have different sizes: only its driver can check the alignment. */
#define Z_OPWEST_BUNDLE_UNEVEN(_node)                                                              \
	(DT_NODE_HAS_COMPAT(Z_OPWEST_BUNDLE_MTD(_node), st_stm32f2_flash_controller) ||            \
	 DT_NODE_HAS_COMPAT(Z_OPWEST_BUNDLE_MTD(_node), st_stm32f4_flash_controller) ||            \
	 DT_NODE_HAS_COMPAT(Z_OPWEST_BUNDLE_MTD(_node), st_stm32f7_flash_controller))

#define Z_OPWEST_BUNDLE_BLOCK(_node)                                                               \
	(Z_OPWEST_BUNDLE_UNEVEN(_node)                                                             \
		 ? 1U                                                                              \
		 : DT_PROP_OR(Z_OPWEST_BUNDLE_MEM(_node), erase_block_size, 1U))

#define Z_OPWEST_BUNDLE_CHECK(_label)                                                              \
	BUILD_ASSERT(DT_NODE_EXISTS(Z_OPWEST_BUNDLE_MEM(DT_NODELABEL(_label))),                    \
		     "opwest: " #_label " is not a partition of memory-mapped flash "              \
		     "(compatible soc-nv-flash)");                                                 \
	BUILD_ASSERT(Z_OPWEST_BUNDLE_ADDRESS(DT_NODELABEL(_label)) % OPWEST_BUNDLE_IMAGE_ALIGN ==  \
			     0,                                                                    \
		     "opwest: the address of " #_label " is not a multiple of 64");                \
	BUILD_ASSERT(Z_OPWEST_BUNDLE_OFFSET(DT_NODELABEL(_label)) %                                \
					     Z_OPWEST_BUNDLE_BLOCK(DT_NODELABEL(_label)) ==        \
				     0 &&                                                          \
			     DT_REG_SIZE(DT_NODELABEL(_label)) %                                   \
					     Z_OPWEST_BUNDLE_BLOCK(DT_NODELABEL(_label)) ==        \
				     0,                                                            \
		     "opwest: " #_label " does not consist of whole blocks (erase-block-size)");   \
	BUILD_ASSERT(DT_PROP(Z_OPWEST_BUNDLE_MEM(DT_NODELABEL(_label)), write_block_size) <= 64 && \
			     IS_POWER_OF_TWO(DT_PROP(Z_OPWEST_BUNDLE_MEM(DT_NODELABEL(_label)),    \
						     write_block_size)),                           \
		     "opwest: write-block-size of the flash of " #_label                           \
		     " is not a power of two up to 64")

#define Z_OPWEST_BUNDLE_SLOT(_label)                                                               \
	{                                                                                          \
		.memory = (const uint8_t *)Z_OPWEST_BUNDLE_ADDRESS(DT_NODELABEL(_label)),          \
		.size = DT_REG_SIZE(DT_NODELABEL(_label)),                                         \
		.write_size =                                                                      \
			DT_PROP(Z_OPWEST_BUNDLE_MEM(DT_NODELABEL(_label)), write_block_size),      \
		.erased =                                                                          \
			DT_PROP_OR(Z_OPWEST_BUNDLE_MTD(DT_NODELABEL(_label)), erase_value, 0xff),  \
	},

#define Z_OPWEST_BUNDLE_PARTITION(_label)                                                          \
	{                                                                                          \
		.flash = DEVICE_DT_GET(Z_OPWEST_BUNDLE_MTD(DT_NODELABEL(_label))),                 \
		.offset = Z_OPWEST_BUNDLE_OFFSET(DT_NODELABEL(_label)),                            \
		.size = DT_REG_SIZE(DT_NODELABEL(_label)),                                         \
	}

#define Z_OPWEST_BUNDLE_ROW(_label) Z_OPWEST_BUNDLE_PARTITION(_label),

/** @endcond */

/**
 * @brief Define a storage: a static constant.
 *
 * @param _name    The name of the struct opwest_bundle_flash.
 * @param _records The node label of the partition for the records.
 * @param ...      The node labels of the partitions of the slots, two or more.
 */
#define OPWEST_BUNDLE_FLASH_DEFINE(_name, _records, ...)                                           \
	FOR_EACH(Z_OPWEST_BUNDLE_CHECK, (;), __VA_ARGS__)                                          \
		;                                                                                  \
	static const struct opwest_bundle_slot _name##_slots[] = {                                 \
		FOR_EACH(Z_OPWEST_BUNDLE_SLOT, (), __VA_ARGS__)};                                  \
	static const struct opwest_bundle_partition _name##_partitions[] = {                       \
		FOR_EACH(Z_OPWEST_BUNDLE_ROW, (), __VA_ARGS__)};                                   \
	static struct opwest_bundle_records _name##_records = {                                    \
		.lock = Z_MUTEX_INITIALIZER(_name##_records.lock),                                 \
	};                                                                                         \
	BUILD_ASSERT(ARRAY_SIZE(_name##_slots) >= 2, "opwest: two slots or more");                 \
	static const struct opwest_bundle_flash _name = {                                          \
		.storage = {.api = &opwest_bundle_flash_api,                                       \
			    .slots = _name##_slots,                                                \
			    .slot_count = ARRAY_SIZE(_name##_slots)},                              \
		.partitions = _name##_partitions,                                                  \
		.records_partition = Z_OPWEST_BUNDLE_PARTITION(_records),                          \
		.records = &_name##_records,                                                       \
	}

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLE_STORAGE_ZEPHYR_H_ */
