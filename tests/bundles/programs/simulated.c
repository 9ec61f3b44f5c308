/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sys/mman.h>

#include "given.h"
#include "simulated.h"

struct simulated simulated;

uint8_t *simulated_memory(uint8_t slot)
{
	return (uint8_t *)((uintptr_t)SLOT_BASE + slot * (uintptr_t)SLOT_STRIDE);
}

void simulated_disturb(uint32_t n, enum when when, uint32_t fraction, int code)
{
	simulated.disturbed = n == 0U ? 0U : simulated.operations + n;
	simulated.when = when;
	simulated.fraction = fraction;
	simulated.code = code;
	simulated.next_code = 0;
}

static bool is_disturbed(enum when when)
{
	return simulated.operations == simulated.disturbed && simulated.when == when;
}

static int disturb(void)
{
	simulated.disturbed = 0U;
	if (simulated.next_code != 0) {
		const int code = simulated.code;

		simulated_disturb(1U, BEFORE, 0U, simulated.next_code);
		return code;
	}
	if (simulated.code != 0) {
		return simulated.code;
	}
	longjmp(simulated.cut, 1);
}

/* Flash between two values: some bits have the old value, some the new one. */
static void tear(uint8_t *memory, const uint8_t *data, uint8_t value, uint32_t size)
{
	const uint32_t done = (uint32_t)((uint64_t)size * simulated.fraction / 256U);

	for (uint32_t i = 0U; i < done; i++) {
		memory[i] = data != NULL ? data[i] : value;
	}
	if (done < size) {
		const uint8_t target = data != NULL ? data[done] : value;

		memory[done] = (uint8_t)((memory[done] & 0xa5U) | (target & 0x5aU));
	}
}

/* Write data, or one value without data, as an operation of this kind. */
static int operate(uint32_t *kind, uint8_t *memory, const uint8_t *data, uint8_t value,
		   uint32_t size)
{
	simulated.operations++;
	(*kind)++;
	if (is_disturbed(BEFORE)) {
		return disturb();
	}
	if (is_disturbed(INSIDE)) {
		tear(memory, data, value, size);
		return disturb();
	}
	for (uint32_t i = 0U; i < size; i++) {
		memory[i] = data != NULL ? data[i] : value;
	}
	return is_disturbed(AFTER) ? disturb() : 0;
}

static int erase(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	REQUIRE(storage == &simulated_storage && slot < storage->slot_count);
	return operate(&simulated.erases, simulated_memory(slot), NULL,
		       simulated.slots[slot].erased, SLOT_SIZE);
}

static int write(const struct opwest_bundle_storage *storage, uint8_t slot, uint32_t offset,
		 const uint8_t *data, uint32_t size)
{
	uint8_t *const memory = &simulated_memory(slot)[offset];

	REQUIRE(storage == &simulated_storage && slot < storage->slot_count);
	REQUIRE(size > 0U && size <= SLOT_SIZE && offset <= SLOT_SIZE - size);
	REQUIRE(offset % simulated.slots[slot].write_size == 0U);
	REQUIRE(size % simulated.slots[slot].write_size == 0U);
	for (uint32_t i = 0U; i < size; i++) {
		REQUIRE(memory[i] == simulated.slots[slot].erased);
	}
	return operate(&simulated.writes, memory, data, 0U, size);
}

static int synchronise(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	REQUIRE(storage == &simulated_storage && slot < storage->slot_count);
	return simulated.synchronise_code;
}

static int load(const struct opwest_bundle_storage *storage, uint16_t id, void *data, uint32_t size)
{
	REQUIRE(storage == &simulated_storage && id < MAX_RECORDS);
	if (simulated.load_code != 0) {
		return simulated.load_code;
	}
	if (simulated.records[id].size != size) {
		return simulated.records[id].size == 0U ? -ENOENT : -EBADMSG;
	}
	memcpy(data, simulated.records[id].data, size);
	return 0;
}

static int store(const struct opwest_bundle_storage *storage, uint16_t id, const void *data,
		 uint32_t size)
{
	REQUIRE(storage == &simulated_storage && id < MAX_RECORDS && size <= 64U);
	simulated.operations++;
	simulated.stores++;
	if (is_disturbed(BEFORE) || is_disturbed(INSIDE)) {
		return disturb();
	}
	memcpy(simulated.records[id].data, data, size);
	simulated.records[id].size = size;
	return is_disturbed(AFTER) ? disturb() : 0;
}

/* The file of a relocatable image contains one that is linked at its slot. */
static int link(const struct opwest_bundle_storage *storage, uint8_t slot,
		const struct opwest_bundle_header *header,
		const struct opwest_bundle_descriptor **descriptor)
{
	REQUIRE(storage == &simulated_storage && slot < storage->slot_count);
	REQUIRE(header->kind == OPWEST_BUNDLE_LLEXT && simulated.links[slot] == 0);
	if (simulated.link_code != 0) {
		return simulated.link_code;
	}
	simulated.links[slot]++;
	*descriptor = simulated.descriptor_offset == 0U
			      ? NULL
			      : (const void *)&simulated_memory(slot)[simulated.descriptor_offset];
	return 0;
}

static int unlink(const struct opwest_bundle_storage *storage, uint8_t slot)
{
	REQUIRE(storage == &simulated_storage && slot < storage->slot_count);
	REQUIRE(simulated.links[slot] == 1);
	simulated.links[slot]--;
	return 0;
}

struct opwest_bundle_storage_api simulated_api = {
	.erase = erase,
	.write = write,
	.synchronise = synchronise,
	.load = load,
	.store = store,
	.link = link,
	.unlink = unlink,
};
struct opwest_bundle_storage simulated_storage = {.api = &simulated_api, .slots = simulated.slots};

void simulated_open(uint8_t count, uint32_t write_size, uint8_t erased)
{
	static bool is_mapped;

	REQUIRE(count <= MAX_SLOTS);
	memset(&simulated, 0, sizeof(simulated));
	simulated_storage.slot_count = count;
	for (uint8_t i = 0U; i < MAX_SLOTS; i++) {
		uint8_t *const memory = simulated_memory(i);

		if (!is_mapped) {
			REQUIRE(mmap(memory, SLOT_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
				     0) == (void *)memory);
		}
		memset(memory, erased, SLOT_SIZE);
		simulated.slots[i] = (struct opwest_bundle_slot){
			.memory = memory,
			.size = SLOT_SIZE,
			.write_size = write_size,
			.erased = erased,
		};
	}
	is_mapped = true;
}
