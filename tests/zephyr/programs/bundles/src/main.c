/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/reboot.h>

#include <opwest/bundle_keys.h>

#include "bundles.h"

OPWEST_BUNDLE_FLASH_DEFINE(flash_storage, bundle_records, bundle_slot0, bundle_slot1);

static uint8_t memory[SESSIONS][MEMORY_SIZE] __aligned(64);
static uint8_t trial[MEMORY_SIZE] __aligned(64);
static char line[128];

struct opwest_bundles bundles;
struct opwest_bundles_config config = {
	.storage = &flash_storage.storage,
	.keys = opwest_bundle_keys,
	.key_count = OPWEST_BUNDLE_KEY_COUNT,
	.host = &opwest_bundle_host,
	.trial = {.memory = trial, .size = sizeof(trial)},
};
struct opwest_session sessions[SESSIONS];

struct opwest_flash_emul_state *state_of_flash(void)
{
	return opwest_flash_emul_state(DEVICE_DT_GET(DT_NODELABEL(flash_emul)));
}

const uint8_t *part_of(uint32_t index, uint32_t *size)
{
	const struct package *const package = (const struct package *)PACKAGE_ADDRESS;

	if (package->magic != PACKAGE_MAGIC || index >= package->count) {
		printk("error: no part %u\n", index);
		k_panic();
	}
	if (size != NULL) {
		*size = package->parts[index].size;
	}
	return (const uint8_t *)PACKAGE_ADDRESS + package->parts[index].offset;
}

const struct cases *cases_of(uint32_t index)
{
	return (const struct cases *)part_of(index, NULL);
}

const uint8_t *input_of(const struct cases *cases, uint32_t index)
{
	return cases->data + (size_t)index * cases->input_size;
}

const uint8_t *output_of(const struct cases *cases, uint32_t index)
{
	return cases->data + (size_t)cases->count * cases->input_size +
	       (size_t)index * cases->output_size;
}

void reset(void)
{
	sys_reboot(SYS_REBOOT_WARM);
}

int start(void)
{
	const int rc = opwest_bundles_start(&bundles, &config);

	for (uint32_t i = 0U; i < SESSIONS; i++) {
		sessions[i].memory.memory = memory[i];
		sessions[i].memory.size = MEMORY_SIZE;
		const int added = opwest_session_add(&bundles, &sessions[i]);

		if (added != 0) {
			printk("error: opwest_session_add: %d\n", added);
		}
	}
	return rc;
}

/* Copy a line of the script; false at its end. */
static bool line_of(uint32_t number)
{
	uint32_t size;
	const char *text = (const char *)part_of(0U, &size);
	const char *const end = text + size;

	for (; number > 0U && text < end; text++) {
		number -= *text == '\n' ? 1U : 0U;
	}
	for (uint32_t i = 0U; i < sizeof(line); i++, text++) {
		line[i] = text < end && *text != '\n' ? *text : '\0';
		if (line[i] == '\0') {
			return i > 0U;
		}
	}
	return false;
}

int main(void)
{
	struct opwest_flash_emul_state *const state = state_of_flash();

	/* A command that a reset interrupts is not repeated; one that continues sets the line. */
	while (line_of(state->test[WORD_LINE])) {
		state->test[WORD_LINE]++;
		command(line);
	}
	printk("END\n");
	return 0;
}
