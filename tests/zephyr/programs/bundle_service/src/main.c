/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose bundles a host replaces. It runs the first golden vector of the current model over
 * and over, and prints the model and the first byte of its output when they change.
 */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <opwest/bundle_keys.h>
#include <opwest/bundle_service.h>
#include <opwest/bundle_storage_zephyr.h>
#include <opwest/bundles.h>

#define MEMORY_SIZE 65536U
#define OUTPUT_SIZE 64U

OPWEST_BUNDLE_FLASH_DEFINE(flash_storage, bundle_records, bundle_slot0, bundle_slot1);

static uint8_t memory[MEMORY_SIZE] __aligned(64);
static uint8_t trial[MEMORY_SIZE] __aligned(64);
static struct opwest_bundles bundles;
static struct opwest_session session = {.memory = {.memory = memory, .size = sizeof(memory)}};
static const struct opwest_bundles_config config = {
	.storage = &flash_storage.storage,
	.keys = opwest_bundle_keys,
	.key_count = OPWEST_BUNDLE_KEY_COUNT,
	.host = &opwest_bundle_host,
	.trial = {.memory = trial, .size = sizeof(trial)},
	.allows_downgrade = true,
};

/* Run the current model on its first golden vector; -1 without a model, or the first output byte. */
static int run(uint32_t *version)
{
	static uint8_t output[OUTPUT_SIZE] __aligned(8);
	const struct opwest_bundle_descriptor *descriptor;
	const struct opwest_bundle_header *header;
	void *const outputs[] = {output};
	int rc = opwest_session_hold(&session, &descriptor, &header);

	if (rc != 0) {
		return -1;
	}
	*version = header->version;
	rc = opwest_session_run_held(&session, descriptor->vectors[0].inputs, outputs);
	opwest_session_release(&session);
	return rc != 0 ? -1 : output[0];
}

int main(void)
{
	uint32_t shown_version = UINT32_MAX;
	int shown = -2;
	int rc = opwest_bundles_start(&bundles, &config);

	printk("start: %d\n", rc);
	rc = opwest_session_add(&bundles, &session);
	if (rc != 0) {
		printk("error: opwest_session_add returned %d\n", rc);
	}
	opwest_bundles_serve(&bundles);
	for (;;) {
		uint32_t version = 0;
		const int found = run(&version);

		if (found != shown || version != shown_version) {
			/* As a whole: the interrupts of the UART send what the shell echoes. */
			const unsigned int key = irq_lock();

			printk("now version %u.%u.%u: %d\n", version >> 24, (version >> 16) & 0xffU,
			       version & 0xffffU, found);
			irq_unlock(key);
			shown = found;
			shown_version = version;
		}
		k_msleep(20);
	}
	return 0;
}
