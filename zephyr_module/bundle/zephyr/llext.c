/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/cache.h>
#include <zephyr/kernel.h>
#include <zephyr/llext/buf_loader.h>
#include <zephyr/llext/llext.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/printk.h>
#include <zephyr/version.h>

#include <opwest/bundle_llext.h>

#include "instructions_internal.h"
#include "llext_internal.h"

#if KERNEL_VERSION_NUMBER < ZEPHYR_VERSION(4, 2, 0)
#error "opwest: CONFIG_OPWEST_BUNDLE_LLEXT requires Zephyr 4.2 or newer"
#endif

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

/* The symbol of the descriptor in .exported_sym. */
#define DESCRIPTOR "opwest_bundle"

/* A loaded image. */
struct image {
	/* NULL: unused. */
	const struct opwest_bundle_storage *storage;
	struct llext *extension;
	uint8_t slot;
};

static struct image images[CONFIG_OPWEST_BUNDLE_LLEXT_IMAGES];
/* LLEXT returns the loaded extension for a name in use: each load has a name of its own. */
static uint32_t generation;
static K_MUTEX_DEFINE(lock);

/* An image, or an unused entry for NULL. */
static struct image *find(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	for (size_t i = 0U; i < ARRAY_SIZE(images); i++) {
		if (images[i].storage == storage && (storage == NULL || images[i].slot == slot)) {
			return &images[i];
		}
	}
	return NULL;
}

#ifdef CONFIG_MPU
/*
 * The MPU does not permit execution from RAM: a partition of the default domain covers the code.
 * Threads in supervisor mode can access everything else without partitions, which are few. A thread
 * gets the regions of its domain when the kernel switches to it: also the current one.
 */
static void switch_context(void)
{
	k_sleep(K_TICKS(1));
}

static int make_executable(struct llext *extension)
{
	const int rc = k_mem_domain_add_partition(&k_mem_domain_default,
						  &extension->mem_parts[LLEXT_MEM_TEXT]);

	switch_context();
	return rc;
}

static int make_data(struct llext *extension)
{
	const int rc = k_mem_domain_remove_partition(&k_mem_domain_default,
						     &extension->mem_parts[LLEXT_MEM_TEXT]);

	switch_context();
	return rc;
}
#else
static int make_executable(struct llext *extension)
{
	(void)extension;
	return 0;
}

static int make_data(struct llext *extension)
{
	(void)extension;
	return 0;
}
#endif

/* Reads an image. */
struct source {
	struct llext_buf_loader buffer;
	struct opwest_llext_tables tables;
};

#if KERNEL_VERSION_NUMBER < ZEPHYR_VERSION(4, 3, 0)
/*
 * Zephyr 4.2 copies constants, too, if an MPU could not cover them: nearly always. Threads in
 * supervisor mode read flash without a region of their own, so LLEXT does not get this section
 * (section_detached), and its symbols are absolute addresses in the slot. Later versions have
 * CONFIG_LLEXT_RODATA_NO_RELOC.
 */
static const elf_shdr_t *detached;

static bool is_detached(const elf_shdr_t *section)
{
	return section == detached;
}

static int read_symbols(struct llext_loader *loader, void *data, size_t size)
{
	struct source *const source = CONTAINER_OF(loader, struct source, buffer.loader);
	const struct opwest_llext_tables *const tables = &source->tables;
	const size_t from = source->buffer.pos - tables->symbols->sh_offset;
	const int rc = llext_buf_read(loader, data, size);
	elf_sym_t *const symbol = data;

	if (rc == 0 && size == sizeof(*symbol) && from < tables->symbols->sh_size &&
	    symbol->st_shndx == (size_t)(tables->constants - tables->sections)) {
		symbol->st_value += (uintptr_t)&source->buffer.buf[tables->constants->sh_offset];
		symbol->st_shndx = SHN_ABS;
		symbol->st_info = STT_NOTYPE; /* a local one; that of a section has no index */
	}
	return rc;
}

static int load_source(struct source *source, const char *name, struct llext **extension)
{
	struct llext_load_param parameters = LLEXT_LOAD_PARAM_DEFAULT;

	if (source->tables.constants != NULL) {
		detached = source->tables.constants;
		parameters.section_detached = is_detached;
		source->buffer.loader.read = read_symbols;
	}
	return llext_load(&source->buffer.loader, name, extension, &parameters);
}
#else
static int load_source(struct source *source, const char *name, struct llext **extension)
{
	const struct llext_load_param parameters = LLEXT_LOAD_PARAM_DEFAULT;

	return llext_load(&source->buffer.loader, name, extension, &parameters);
}
#endif

/* The bytes from a pointer to the end of the memory that begins at `begin`; 0 outside of it. */
static size_t room_in(const void *begin, size_t size, const void *pointer)
{
	const uintptr_t first = (uintptr_t)begin;
	const uintptr_t address = (uintptr_t)pointer;

	return begin != NULL && address >= first && address - first < size
		       ? size - (address - first)
		       : 0U;
}

static size_t room_at(const struct llext *extension, const void *pointer)
{
	size_t room = 0U;

	for (size_t i = 0U; i < LLEXT_MEM_COUNT && room == 0U; i++) {
		room = room_in(extension->mem[i], extension->mem_size[i], pointer);
	}
	return room;
}

static const struct opwest_bundle_descriptor *descriptor_of(const struct llext *extension,
							    const uint8_t *image, size_t size)
{
	const void *found;

	/* The search would read behind the image for a name without a NUL. */
	for (size_t i = 0U; i < extension->exp_tab.sym_cnt; i++) {
		const char *const name = extension->exp_tab.syms[i].name;
		const size_t room = MAX(room_in(image, size, name), room_at(extension, name));

		if (room == 0U || memchr(name, '\0', room) == NULL) {
			return NULL;
		}
	}
	found = llext_find_sym(&extension->exp_tab, DESCRIPTOR);
	if (found == NULL || room_at(extension, found) < sizeof(struct opwest_bundle_descriptor) ||
	    (uintptr_t)found % _Alignof(struct opwest_bundle_descriptor) != 0U) {
		return NULL;
	}
	return found;
}

static int load(struct image *entry, const struct opwest_bundle_storage *storage, uint8_t slot,
		const uint8_t *image, size_t size)
{
	struct source source = {.buffer = LLEXT_PERSISTENT_BUF_LOADER(image, size)};
	struct llext *extension = NULL;
	char name[LLEXT_MAX_NAME_LEN + 1];
	const char *reason = NULL;
	int rc = opwest_llext_check(image, size, &source.tables, &reason);

	if (rc != 0) {
		LOG_ERR("slot %u: %s", slot, reason);
		return rc;
	}
	do {
		generation++;
		snprintk(name, sizeof(name), "ow%u-%08x", slot, generation);
	} while (llext_by_name(name) != NULL);
	rc = load_source(&source, name, &extension);
	if (rc < 0) {
		LOG_ERR("slot %u: llext_load() returned %d", slot, rc);
		return rc;
	}
	/* LLEXT does the same, but ignores the results. */
	rc = opwest_data_cache_result(sys_cache_data_flush_range(
		extension->mem[LLEXT_MEM_TEXT], extension->mem_size[LLEXT_MEM_TEXT]));
	if (rc == 0) {
		rc = opwest_instructions_changed();
	}
	if (rc != 0) {
		LOG_ERR("slot %u: instruction memory is not coherent: %d", slot, rc);
		(void)llext_unload(&extension);
		return rc;
	}
	rc = make_executable(extension);
	if (rc != 0) {
		LOG_ERR("slot %u: k_mem_domain_add_partition() returned %d", slot, rc);
		(void)llext_unload(&extension);
		return rc;
	}
	*entry = (struct image){.storage = storage, .extension = extension, .slot = slot};
	return 0;
}

static int unload(struct image *image)
{
	int rc = make_data(image->extension);

	if (rc == 0) {
		rc = llext_unload(&image->extension);
	}
	if (rc != 0) {
		LOG_ERR("slot %u: not unloaded: %d", image->slot, rc);
		return rc < 0 ? rc : -EBUSY;
	}
	*image = (struct image){.storage = NULL};
	return 0;
}

static int link_slot(const struct opwest_bundle_storage *storage, uint8_t slot,
		     const struct opwest_bundle_header *header,
		     const struct opwest_bundle_descriptor **descriptor)
{
	struct image *const unused = find(NULL, 0U);
	const uint8_t *const image = &storage->slots[slot].memory[header->image_offset];
	int rc;

	if (find(storage, slot) != NULL) {
		return -EALREADY;
	}
	if (unused == NULL) {
		LOG_ERR("slot %u: CONFIG_OPWEST_BUNDLE_LLEXT_IMAGES images are loaded", slot);
		return -EBUSY;
	}
	rc = load(unused, storage, slot, image, header->image_size);
	if (rc != 0) {
		return rc;
	}
	*descriptor = descriptor_of(unused->extension, image, header->image_size);
	if (*descriptor == NULL) {
		LOG_ERR("slot %u: no symbol " DESCRIPTOR, slot);
		(void)unload(unused);
		return -ENOENT;
	}
	return 0;
}

int opwest_bundle_llext_link(const struct opwest_bundle_storage *storage, uint8_t slot,
			     const struct opwest_bundle_header *header,
			     const struct opwest_bundle_descriptor **descriptor)
{
	int rc;

	(void)k_mutex_lock(&lock, K_FOREVER);
	rc = link_slot(storage, slot, header, descriptor);
	(void)k_mutex_unlock(&lock);
	return rc;
}

int opwest_bundle_llext_unlink(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	struct image *image;
	int rc;

	(void)k_mutex_lock(&lock, K_FOREVER);
	image = find(storage, slot);
	rc = image == NULL ? -ENOENT : unload(image);
	(void)k_mutex_unlock(&lock);
	return rc;
}
