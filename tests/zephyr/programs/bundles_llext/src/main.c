/* SPDX-License-Identifier: Apache-2.0 */
/* Loads two models with LLEXT, runs their golden vectors, unloads them; then runs the script. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#include <zephyr/sys/sys_heap.h>

#include <opwest/bundle_llext.h>

#include "bundles.h"
#include "program.h"

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

static uint8_t memory[2][8192] __aligned(64);
static uint8_t results[1024] __aligned(16);
static int failed;

extern struct k_heap llext_heap;

size_t heap_used(void)
{
	struct sys_memory_stats stats;

	(void)sys_heap_runtime_stats_get(&llext_heap.heap, &stats);
	return stats.allocated_bytes;
}

void check(bool passed, const char *text, int value)
{
	printk("%s: %s (%d)\n", passed ? "ok" : "FAILED", text, value);
	failed += passed ? 0 : 1;
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

/* The number of golden vectors with the expected outputs. */
static uint32_t equal_vectors(const struct opwest_bundle_descriptor *descriptor, uint8_t *ram)
{
	const struct opwest_model *const model = descriptor->details->model;
	struct opwest_bundle_workspace *const workspace = (void *)ram;
	uint8_t *pools[OPWEST_BUNDLE_MOST_POOLS];
	uint8_t *next = ram + ROUND_UP(descriptor->workspace_size, 64);
	void *outputs[8];
	uint32_t equal = 0U;

	for (uint16_t i = 0U; i < model->pool_count; i++) {
		next = (uint8_t *)ROUND_UP((uintptr_t)next, model->pools[i].align);
		pools[i] = next;
		next += model->pools[i].size;
	}
	if (next > ram + sizeof(memory[0]) || model->output_count > ARRAY_SIZE(outputs)) {
		return 0U;
	}
	next = results;
	for (uint16_t i = 0U; i < model->output_count; i++) {
		outputs[i] = next;
		next += ROUND_UP(model->outputs[i].size, 16);
	}
	descriptor->prepare(workspace, pools);
	if (descriptor->open(workspace, NULL, &opwest_bundle_host) != 0) {
		return 0U;
	}
	for (uint32_t i = 0U; i < descriptor->vector_count; i++) {
		const struct opwest_bundle_vector *const vector = &descriptor->vectors[i];
		bool agrees;

		if (vector->resets && descriptor->reset != NULL) {
			(void)descriptor->reset(workspace);
		}
		agrees = descriptor->run(vector->inputs, outputs, workspace, NULL) == 0;
		for (uint16_t k = 0U; k < model->output_count; k++) {
			const size_t size = model->outputs[k].size;

			agrees = agrees && memcmp(outputs[k], vector->outputs[k], size) == 0;
		}
		equal += agrees ? 1U : 0U;
	}
	(void)descriptor->close(workspace, NULL);
	return equal;
}

static void run(uint8_t slot, const struct opwest_bundle_descriptor *descriptor)
{
	const uint32_t equal = equal_vectors(descriptor, memory[slot]);

	printk("%s: %u of %u vectors equal\n", descriptor->details->model->name, equal,
	       descriptor->vector_count);
	check(equal == descriptor->vector_count && equal != 0U, "vectors", (int)equal);
}

static void load_and_run(uint8_t slot)
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
	run(slot, descriptor);
}

static void unload(uint8_t slot)
{
	const int rc = opwest_bundle_llext_unlink(&storage, slot);

	check(rc == 0, "unload", rc);
}

static void refusals(void)
{
	const struct opwest_bundle_descriptor *descriptor;
	void *taken;
	size_t size;
	int rc = link_slot(0U, &descriptor);

	check(rc == 0, "load", rc);
	rc = link_slot(0U, &descriptor);
	check(rc == -EALREADY, "a slot is loaded once", rc);
	unload(0U);
	rc = opwest_bundle_llext_unlink(&storage, 0U);
	check(rc == -ENOENT, "unload without a load", rc);

	/* All but a part of the heap is used. */
	for (size = CONFIG_LLEXT_HEAP_SIZE * 1024U, taken = NULL; taken == NULL; size -= 64U) {
		taken = k_heap_alloc(&llext_heap, size - 1024U, K_NO_WAIT);
	}
	size = heap_used();
	rc = link_slot(0U, &descriptor);
	check(rc == -ENOMEM, "too little heap", rc);
	check(heap_used() == size, "the heap is as before", (int)heap_used());
	k_heap_free(&llext_heap, taken);
	check(heap_used() == 0U, "empty heap", (int)heap_used());
}

static void check_loader(void)
{
	const struct opwest_bundle_descriptor *descriptor;
	const uint32_t *const count = (const uint32_t *)part_of(PART_COUNT, NULL);

	slots[0].memory = part_of(PART_FIRST, &slots[0].size);
	slots[1].memory = part_of(PART_SECOND, &slots[1].size);
	load_and_run(0U);
	unload(0U);
	check(heap_used() == 0U, "empty heap", (int)heap_used());
	load_and_run(1U);
	load_and_run(0U); /* beside it, as during an installation */
	unload(1U);
	unload(0U);
	check(heap_used() == 0U, "empty heap", (int)heap_used());
	load_and_run(0U);
	unload(0U);
	check(heap_used() == 0U, "empty heap", (int)heap_used());
	refusals();
	damage_images(slots[0].memory, slots[0].size, *count);
	check(heap_used() == 0U, "empty heap", (int)heap_used());
	check(link_slot(0U, &descriptor) == 0, "load after damaged images", 0);
	run(0U, descriptor);
	unload(0U);
	check(heap_used() == 0U, "empty heap", (int)heap_used());
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
