/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/cache.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/barrier.h>
#include <zephyr/sys/crc.h>
#include <zephyr/sys/util.h>

#include <opwest/bundle_storage_zephyr.h>

#include "instructions_internal.h"

#ifdef CONFIG_OPWEST_BUNDLE_LLEXT
#include <opwest/bundle_llext.h>
#endif

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

/* The largest record, bytes. */
#define MAX_BYTES 64U

/*
 * A record is stored in two NVS entries in turn: the one that is not the newest is replaced. NVS
 * checks its own entries with 8 bits, so a torn write can pass as an entry; this CRC finds it, and
 * the other entry is still there.
 */
struct entry {
	uint32_t sequence;
	uint32_t crc;
	uint8_t data[MAX_BYTES];
};

#define COPIES 2U

static const struct opwest_bundle_flash *flash_of(const struct opwest_bundle_storage *storage)
{
	return CONTAINER_OF(storage, struct opwest_bundle_flash, storage);
}

static int check(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	const struct opwest_bundle_partition *const partition =
		&flash_of(storage)->partitions[slot];
	const struct flash_parameters *parameters;

	if (!device_is_ready(partition->flash)) {
		return -ENODEV;
	}
	parameters = flash_get_parameters(partition->flash);
	if (parameters->erase_value != storage->slots[slot].erased ||
	    storage->slots[slot].write_size % parameters->write_block_size != 0U) {
		LOG_ERR("%s: write-block-size or erase-value differ from devicetree",
			partition->flash->name);
		return -EINVAL;
	}
	return 0;
}

static int erase(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	const struct opwest_bundle_partition *const partition =
		&flash_of(storage)->partitions[slot];
	const int rc = check(storage, slot);

	if (rc != 0) {
		return rc;
	}
#ifdef CONFIG_FLASH_HAS_NO_EXPLICIT_ERASE
	return flash_flatten(partition->flash, partition->offset, partition->size);
#else
	return flash_erase(partition->flash, partition->offset, partition->size);
#endif
}

static int write(const struct opwest_bundle_storage *storage, uint8_t slot, uint32_t offset,
		 const uint8_t *data, uint32_t size)
{
	const struct opwest_bundle_partition *const partition =
		&flash_of(storage)->partitions[slot];

	if (offset > partition->size || partition->size - offset < size) {
		return -EINVAL;
	}
	return flash_write(partition->flash, partition->offset + (off_t)offset, data, size);
}

/* Slots begin and end at whole cache lines, and nothing writes to them through the cache. */
static int synchronise(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	const struct opwest_bundle_slot *const own = &storage->slots[slot];
	int rc;

	barrier_dsync_fence_full();
	rc = opwest_data_cache_result(sys_cache_data_invd_range((void *)own->memory, own->size));
	return rc != 0 ? rc : opwest_instructions_changed();
}

static int mount(const struct opwest_bundle_flash *flash)
{
	const struct opwest_bundle_partition *const place = &flash->records_partition;
	struct opwest_bundle_records *const records = flash->records;
	struct flash_pages_info page;
	int rc;

	if (records->is_mounted) {
		return 0;
	}
	if (!device_is_ready(place->flash)) {
		return -ENODEV;
	}
	rc = flash_get_page_info_by_offs(place->flash, place->offset, &page);
	if (rc != 0) {
		return rc;
	}
	if (page.size > UINT16_MAX) {
		LOG_ERR("records: NVS needs blocks of less than 64 KB");
		return -ENOTSUP;
	}
	records->nvs.flash_device = place->flash;
	records->nvs.offset = place->offset;
	records->nvs.sector_size = (uint16_t)page.size;
	records->nvs.sector_count = (uint16_t)(place->size / page.size);
	rc = nvs_mount(&records->nvs);
	if (rc != 0) {
		LOG_ERR("records: nvs_mount() returned %d; erase a partition that NVS has not "
			"written",
			rc);
		return rc;
	}
	records->is_mounted = true;
	return 0;
}

static uint16_t number_of(uint16_t id, uint32_t copy)
{
	return (uint16_t)(id * COPIES + copy);
}

static uint32_t crc_of(uint16_t id, const struct entry *entry, uint32_t size)
{
	const uint32_t crc =
		crc32_ieee_update(id, (const uint8_t *)&entry->sequence, sizeof(entry->sequence));

	return crc32_ieee_update(crc, entry->data, size);
}

/* Read the newest entry of a record; its number is set if there is one. */
static int find(struct nvs_fs *nvs, uint16_t id, uint32_t size, struct entry *newest,
		uint32_t *copy)
{
	const size_t length = offsetof(struct entry, data) + size;
	uint32_t damaged = 0U;
	bool found = false;

	for (uint32_t i = 0U; i < COPIES; i++) {
		struct entry entry;
		const ssize_t rc = nvs_read(nvs, number_of(id, i), &entry, length);

		if (rc == -ENOENT) {
			continue;
		}
		if (rc < 0) {
			return (int)rc;
		}
		if ((size_t)rc != length || entry.crc != crc_of(id, &entry, size)) {
			damaged++;
			continue;
		}
		/* Sequences wrap around. */
		if (!found || (int32_t)(entry.sequence - newest->sequence) > 0) {
			*newest = entry;
			*copy = i;
			found = true;
		}
	}
	if (found) {
		return 0;
	}
	/* A single damaged entry is the first one of a record, torn. */
	return damaged < COPIES ? -ENOENT : -EBADMSG;
}

static bool is_valid(uint16_t id, uint32_t size)
{
	return size <= MAX_BYTES && id < UINT16_MAX / COPIES;
}

static int load(const struct opwest_bundle_storage *storage, uint16_t id, void *data, uint32_t size)
{
	const struct opwest_bundle_flash *const flash = flash_of(storage);
	struct entry newest;
	uint32_t copy;
	int rc;

	if (!is_valid(id, size)) {
		return -EINVAL;
	}
	(void)k_mutex_lock(&flash->records->lock, K_FOREVER);
	rc = mount(flash);
	if (rc == 0) {
		rc = find(&flash->records->nvs, id, size, &newest, &copy);
	}
	if (rc == 0) {
		memcpy(data, newest.data, size);
	}
	(void)k_mutex_unlock(&flash->records->lock);
	return rc;
}

static int replace(struct nvs_fs *nvs, uint16_t id, const void *data, uint32_t size)
{
	struct entry newest = {.sequence = 0U};
	struct entry entry;
	uint32_t copy = COPIES - 1U;
	const int rc = find(nvs, id, size, &newest, &copy);
	ssize_t written;

	if (rc == 0 && memcmp(newest.data, data, size) == 0) {
		return 0;
	}
	if (rc != 0 && rc != -ENOENT && rc != -EBADMSG) {
		return rc;
	}
	entry.sequence = newest.sequence + 1U;
	memcpy(entry.data, data, size);
	entry.crc = crc_of(id, &entry, size);
	written = nvs_write(nvs, number_of(id, (copy + 1U) % COPIES), &entry,
			    offsetof(struct entry, data) + size);
	return written < 0 ? (int)written : 0;
}

static int store(const struct opwest_bundle_storage *storage, uint16_t id, const void *data,
		 uint32_t size)
{
	const struct opwest_bundle_flash *const flash = flash_of(storage);
	int rc;

	if (!is_valid(id, size)) {
		return -EINVAL;
	}
	(void)k_mutex_lock(&flash->records->lock, K_FOREVER);
	rc = mount(flash);
	if (rc == 0) {
		rc = replace(&flash->records->nvs, id, data, size);
	}
	(void)k_mutex_unlock(&flash->records->lock);
	return rc;
}

const struct opwest_bundle_storage_api opwest_bundle_flash_api = {
	.erase = erase,
	.write = write,
	.synchronise = synchronise,
	.load = load,
	.store = store,
#ifdef CONFIG_OPWEST_BUNDLE_LLEXT
	.link = opwest_bundle_llext_link,
	.unlink = opwest_bundle_llext_unlink,
#endif
};
