/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Install a bundle that uses two accelerators, and run it on all images. The firmware lists its
 * devices in another order than the bundle, and once it lacks one.
 */
#include <errno.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <opwest/bundle_keys.h>
#include <opwest/bundle_storage_zephyr.h>
#include <opwest/bundles.h>
#include <opwest/npu_emul.h>

#include CASES

#define MEMORY_SIZE 4096

OPWEST_BUNDLE_FLASH_DEFINE(flash, bundle_records, bundle_slot0, bundle_slot1);

OPWEST_ALIGNED(64) static uint8_t memory[MEMORY_SIZE];
OPWEST_ALIGNED(64) static uint8_t trial[MEMORY_SIZE];

static const struct opwest_bundle_device devices[] = {
	{"npu_emul", "npu1", DEVICE_DT_GET(DT_NODELABEL(npu1))},
	{"another", NULL, DEVICE_DT_GET(DT_NODELABEL(npu0))},
	{"npu_emul", NULL, DEVICE_DT_GET(DT_NODELABEL(npu0))},
};

#define CONFIG(count)                                                                              \
	{                                                                                          \
		.storage = &flash.storage, .keys = opwest_bundle_keys,                             \
		.host = &opwest_bundle_host, .devices = devices,                                   \
		.trial = {.memory = trial, .size = sizeof(trial)},                                 \
		.key_count = OPWEST_BUNDLE_KEY_COUNT, .device_count = (count),                     \
	}

static const struct opwest_bundles_config lacking = CONFIG(2);
static const struct opwest_bundles_config complete = CONFIG(3);
static struct opwest_bundles bundles;
static struct opwest_session session = {.memory = {.memory = memory, .size = sizeof(memory)}};

static void try_to_install(const struct opwest_bundles_config *config)
{
	struct opwest_bundle_verdict verdict = {0};
	uint32_t offset;
	int rc = opwest_bundles_start(&bundles, config);

	rc = rc == 0 || rc == -ENOENT ? opwest_session_add(&bundles, &session) : rc;
	if (rc == 0) {
		rc = opwest_bundles_begin(&bundles, OPWEST_BUNDLE_NO_SLOT, sizeof(bundle), digest,
					  &offset);
	}
	if (rc == 0) {
		rc = opwest_bundles_write(&bundles, offset, bundle, sizeof(bundle), &offset);
	}
	if (rc == 0) {
		rc = opwest_bundles_install(&bundles, &verdict);
	}
	printk("install: %d %s %d\n", rc == -EBADMSG ? 1 : rc,
	       opwest_bundle_fault_name(verdict.fault), (int)verdict.detail);
}

static void run_images(void)
{
	struct opwest_npu_emul_counts first;
	struct opwest_npu_emul_counts second;
	const uint64_t hash = bundles.header.interface_hash;
	uint32_t right = 0U;

	for (uint32_t i = 0U; i < ARRAY_SIZE(labels); i++) {
		const void *const inputs[] = {images[i]};
		int32_t label = -1;
		void *const outputs[] = {&label};

		if (opwest_session_run(&session, hash, inputs, outputs) == 0 && label == labels[i]) {
			right++;
		}
	}
	opwest_npu_emul_count(DEVICE_DT_GET(DT_NODELABEL(npu0)), &first);
	opwest_npu_emul_count(DEVICE_DT_GET(DT_NODELABEL(npu1)), &second);
	printk("right: %u of %u\nloaded: %u %u\n", right, (uint32_t)ARRAY_SIZE(labels),
	       first.loaded, second.loaded);
}

int main(void)
{
	try_to_install(&lacking);
	try_to_install(&complete);
	run_images();
	printk("END\n");
	return 0;
}
