/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and unloads two models with LLEXT; then runs the script, which installs and runs them. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/llext/elf.h>
#include <zephyr/sys/printk.h>
#include <zephyr/sys/sys_heap.h>

#include <opwest/bundle_llext.h>

#include "bundles.h"

/* The first parts of the package: a number of damaged images, and two bundles for LLEXT. */
enum part_index {
	PART_COUNT = 1,
	PART_FIRST = 2,
	PART_SECOND = 3,
};

static struct opwest_bundle_slot slots[2];
static const struct opwest_bundle_storage storage = {
	.slots = slots,
	.slot_count = ARRAY_SIZE(slots),
};

static int failed;

extern struct k_heap llext_heap;

static size_t heap_used(void)
{
	struct sys_memory_stats stats;

	(void)sys_heap_runtime_stats_get(&llext_heap.heap, &stats);
	return stats.allocated_bytes;
}

static void check(bool passed, const char *text, int value)
{
	printk("%s: %s (%d)\n", passed ? "ok" : "FAILED", text, value);
	failed += passed ? 0 : 1;
}

static void expect(const char *text, int rc, int expected)
{
	check(rc == expected, text, rc);
}

static void check_empty_heap(void)
{
	check(heap_used() == 0U, "empty heap", (int)heap_used());
}

static int link_slot(uint8_t slot, const struct opwest_bundle_descriptor **descriptor)
{
	struct opwest_bundle_header header;

	if (opwest_bundle_parse(slots[slot].memory, slots[slot].size, &header) !=
	    OPWEST_BUNDLE_GOOD) {
		return -EBADMSG;
	}
	return opwest_bundle_llext_link(&storage, slot, &header, descriptor);
}

static void load(uint8_t slot)
{
	const struct opwest_bundle_descriptor *descriptor;
	const uintptr_t begin = (uintptr_t)slots[slot].memory;
	const uint32_t start = k_cycle_get_32();
	const int rc = link_slot(slot, &descriptor);

	check(rc == 0, "load", rc);
	if (rc != 0) {
		return;
	}
	printk("load: slot %u, %u cycles, %u bytes of heap, constants %s\n", slot,
	       k_cycle_get_32() - start, (uint32_t)heap_used(),
	       (uintptr_t)descriptor->vectors[0].inputs[0] - begin < slots[slot].size ? "in place"
										      : "copied");
}

static void unload(uint8_t slot)
{
	expect("unload", opwest_bundle_llext_unlink(&storage, slot), 0);
}

static void refusals(void)
{
	const struct opwest_bundle_descriptor *descriptor;
	void *taken;
	size_t size;

	expect("load", link_slot(0U, &descriptor), 0);
	expect("a slot is loaded once", link_slot(0U, &descriptor), -EALREADY);
	unload(0U);
	expect("unload without a load", opwest_bundle_llext_unlink(&storage, 0U), -ENOENT);

	/* All but a part of the heap is used. */
	for (size = CONFIG_LLEXT_HEAP_SIZE * 1024U, taken = NULL; taken == NULL; size -= 64U) {
		taken = k_heap_alloc(&llext_heap, size - 1024U, K_NO_WAIT);
	}
	size = heap_used();
	expect("too little heap", link_slot(0U, &descriptor), -ENOMEM);
	check(heap_used() == size, "the heap is as before", (int)heap_used());
	k_heap_free(&llext_heap, taken);
	check_empty_heap();
}

/* Damaged images, which only a defective builder signs. None must harm the firmware. */
static uint8_t copy[32768] __aligned(64);
static const struct opwest_bundle_slot copied = {.memory = copy, .size = sizeof(copy)};
static const struct opwest_bundle_storage copies = {.slots = &copied, .slot_count = 1U};

static uint8_t *image_of(const uint8_t *bundle, size_t size, struct opwest_bundle_header *header)
{
	memcpy(copy, bundle, size);
	(void)opwest_bundle_parse(copy, size, header);
	return &copy[header->image_offset];
}

static int link_copy(const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_descriptor *descriptor;
	const int rc = opwest_bundle_llext_link(&copies, 0U, header, &descriptor);

	return rc == 0 ? opwest_bundle_llext_unlink(&copies, 0U) : rc;
}

/* Replace all occurrences of a text. */
static void replace(uint8_t *image, size_t size, const char *from, const char *to)
{
	const size_t length = strlen(from);

	for (size_t i = 0U; i + length <= size; i++) {
		if (memcmp(&image[i], from, length) == 0) {
			memcpy(&image[i], to, length);
		}
	}
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* The headers, symbols and relocations are at the ends: half of the changes are there. */
static uint32_t place(uint32_t *state, const struct opwest_bundle_header *header, uint32_t tables)
{
	const uint32_t size = header->image_size;

	switch (next_random(state) % 4U) {
	case 0U:
		return next_random(state) % sizeof(elf_ehdr_t);
	case 1U:
	case 2U:
		return tables + next_random(state) % (size - tables);
	default:
		return next_random(state) % size;
	}
}

static void change_bytes(const uint8_t *bundle, size_t size, uint32_t count)
{
	struct opwest_bundle_header header;
	uint32_t state = 17U;
	uint32_t loaded = 0U;
	uint32_t refused = 0U;

	for (uint32_t i = 0U; i < count; i++) {
		uint8_t *const image = image_of(bundle, size, &header);
		const elf_ehdr_t *const elf = (const elf_ehdr_t *)(const void *)image;
		const elf_shdr_t *const sections = (const void *)&image[elf->e_shoff];
		uint32_t tables = header.image_size;

		for (uint32_t k = 1U; k < elf->e_shnum; k++) {
			if (sections[k].sh_type == SHT_SYMTAB) {
				tables = sections[k].sh_offset;
			}
		}
		image[place(&state, &header, tables)] = (uint8_t)next_random(&state);
		if (link_copy(&header) == 0) {
			loaded++;
		} else {
			refused++;
		}
		if (heap_used() != 0U) {
			break;
		}
	}
	printk("damaged: %u loads, %u refused\n", loaded + refused, refused);
	check(loaded + refused == count, "loads of damaged images", (int)(loaded + refused));
	check(refused != 0U, "refused", (int)refused);
}

static void damage_images(const uint8_t *bundle, size_t size, uint32_t count)
{
	struct opwest_bundle_header header;
	uint8_t *image = image_of(bundle, size, &header);

	expect("the copy", link_copy(&header), 0);
	image[offsetof(elf_ehdr_t, e_machine)] ^= 1U;
	expect("another machine", link_copy(&header), -ENOEXEC);

	image = image_of(bundle, size, &header);
	image[4] = 2U; /* 64 bits */
	expect("another class", link_copy(&header), -ENOEXEC);

	image = image_of(bundle, size, &header);
	image[offsetof(elf_ehdr_t, e_type)] = ET_EXEC;
	expect("an executable", link_copy(&header), -ENOEXEC);

	image = image_of(bundle, size, &header);
	replace(image, header.image_size, "opwest_bundle", "opwest_bumble");
	expect("no descriptor", link_copy(&header), -ENOENT);

	(void)image_of(bundle, size, &header);
	header.image_size /= 2U;
	expect("half of an image", link_copy(&header), -ENOEXEC);

	change_bytes(bundle, size, count);
}

static void check_loader(void)
{
	const uint32_t *const count = (const uint32_t *)part_of(PART_COUNT, NULL);

	slots[0].memory = part_of(PART_FIRST, &slots[0].size);
	slots[1].memory = part_of(PART_SECOND, &slots[1].size);
	load(0U);
	unload(0U);
	check_empty_heap();
	load(1U);
	load(0U); /* beside it, as during an installation */
	unload(1U);
	unload(0U);
	check_empty_heap();
	load(0U);
	unload(0U);
	check_empty_heap();
	refusals();
	damage_images(slots[0].memory, slots[0].size, *count);
	check_empty_heap();
	load(0U);
	unload(0U);
	check_empty_heap();
	printk("loader: %d failed\n", failed);
}

/* main() of the other program. */
int run_script(void);

int main(void)
{
	if (state_of_flash()->test[WORD_LINE] == 0U) {
		check_loader();
	}
	return run_script();
}
