/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged images, which only a defective builder signs. None must harm the firmware. */
#include <errno.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/llext/elf.h>
#include <zephyr/sys/printk.h>

#include <opwest/bundle_llext.h>
#include <opwest/bundles.h>

#include "program.h"

static uint8_t copy[32768] __aligned(64);
static const struct opwest_bundle_slot slot = {.memory = copy, .size = sizeof(copy)};
static const struct opwest_bundle_storage storage = {.slots = &slot, .slot_count = 1U};

static uint8_t *image_of(const uint8_t *bundle, size_t size, struct opwest_bundle_header *header)
{
	memcpy(copy, bundle, size);
	(void)opwest_bundle_parse(copy, size, header);
	return &copy[header->image_offset];
}

static int link_copy(const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_descriptor *descriptor;
	const int rc = opwest_bundle_llext_link(&storage, 0U, header, &descriptor);

	return rc == 0 ? opwest_bundle_llext_unlink(&storage, 0U) : rc;
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

void damage_images(const uint8_t *bundle, size_t size, uint32_t count)
{
	struct opwest_bundle_header header;
	uint8_t *image = image_of(bundle, size, &header);
	int rc = link_copy(&header);

	check(rc == 0, "the copy", rc);
	image[offsetof(elf_ehdr_t, e_machine)] ^= 1U;
	rc = link_copy(&header);
	check(rc == -ENOEXEC, "another machine", rc);

	image = image_of(bundle, size, &header);
	image[4] = 2U; /* 64 bits */
	rc = link_copy(&header);
	check(rc == -ENOEXEC, "another class", rc);

	image = image_of(bundle, size, &header);
	image[offsetof(elf_ehdr_t, e_type)] = ET_EXEC;
	rc = link_copy(&header);
	check(rc == -ENOEXEC, "an executable", rc);

	image = image_of(bundle, size, &header);
	replace(image, header.image_size, "opwest_bundle", "opwest_bumble");
	rc = link_copy(&header);
	check(rc == -ENOENT, "no descriptor", rc);

	(void)image_of(bundle, size, &header);
	header.image_size /= 2U;
	rc = link_copy(&header);
	check(rc == -ENOEXEC, "half of an image", rc);

	change_bytes(bundle, size, count);
}
