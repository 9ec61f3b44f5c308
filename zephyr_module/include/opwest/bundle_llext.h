/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Loads the image of a bundle of kind OPWEST_BUNDLE_LLEXT into RAM with Zephyr's LLEXT.
 *
 * For `link` and `unlink` of a struct opwest_bundle_storage_api; opwest_bundle_flash_api has them.
 * CONFIG_OPWEST_BUNDLE_LLEXT.
 */
#ifndef OPWEST_BUNDLE_LLEXT_H_
#define OPWEST_BUNDLE_LLEXT_H_

#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/bundle_format.h>
#include <opwest/bundle_port.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Load the image of a slot and find its descriptor.
 *
 * The signature of the bundle must be verified before. The image must remain in the slot until
 * opwest_bundle_llext_unlink(): constants without relocations are used in place. With an MPU the
 * code is executable for threads of the default memory domain, in supervisor mode.
 *
 * @param storage    The storage.
 * @param slot       The slot.
 * @param header     The header of the bundle in it.
 * @param descriptor Set to the descriptor.
 *
 * @retval 0        Loaded.
 * @retval -EALREADY An image of this slot is loaded.
 * @retval -EBUSY   CONFIG_OPWEST_BUNDLE_LLEXT_IMAGES images are loaded.
 * @retval -ENOEXEC The image is no relocatable ELF file for this processor, is damaged, or has
 *                  a relocation that cannot be applied.
 * @retval -ENOTSUP It has zeroed memory or constructors.
 * @retval -ENODATA It has an undefined symbol.
 * @retval -ENOENT  It has no descriptor.
 * @retval -ENOMEM  CONFIG_LLEXT_HEAP_SIZE is too small.
 * @return Another negative errno of llext_load() or k_mem_domain_add_partition()
 */
int opwest_bundle_llext_link(const struct opwest_bundle_storage *storage, uint8_t slot,
			     const struct opwest_bundle_header *header,
			     const struct opwest_bundle_descriptor **descriptor);

/**
 * @brief Unload the image of a slot.
 *
 * @retval 0       Unloaded.
 * @retval -ENOENT No image of this slot is loaded.
 * @return Another negative errno of k_mem_domain_remove_partition() or llext_unload(): the image
 *         remains loaded
 */
int opwest_bundle_llext_unlink(const struct opwest_bundle_storage *storage, uint8_t slot);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLE_LLEXT_H_ */
