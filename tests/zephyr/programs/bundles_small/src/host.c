/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/kernel.h>

#include <opwest/bundle_keys.h>
#include <opwest/bundle_storage_zephyr.h>
#include <opwest/bundles.h>

OPWEST_BUNDLE_FLASH_DEFINE(storage, bundle_records, bundle_slot0, bundle_slot1);

static const struct opwest_bundles_config config = {
	.storage = &storage.storage,
	.keys = opwest_bundle_keys,
	.key_count = OPWEST_BUNDLE_KEY_COUNT,
	.host = &opwest_bundle_host,
};
static struct opwest_bundles bundles;
static uint8_t memory[2048] __aligned(8);
static struct opwest_session session = {.memory = {.memory = memory, .size = sizeof(memory)}};

int main(void)
{
	const int8_t image[64] = {0};
	const void *const inputs[] = {image};
	int32_t label = -1;
	void *const outputs[] = {&label};
	struct opwest_bundle_verdict verdict;
	uint32_t next;
	int rc = opwest_bundles_start(&bundles, &config);

	(void)opwest_session_add(&bundles, &session);
	if (rc == -ENOENT) {
		/* What an application that receives a bundle calls. */
		const uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE] = {0};

		rc = opwest_bundles_begin(&bundles, OPWEST_BUNDLE_NO_SLOT, sizeof(image), digest,
					  &next);
		rc = rc != 0 ? rc
			     : opwest_bundles_write(&bundles, 0U, (const uint8_t *)image,
						    sizeof(image), &next);
		rc = rc != 0 ? rc : opwest_bundles_install(&bundles, &verdict);
	}
	printk("rc %d\n", rc);
	rc = opwest_session_run(&session, 0U, inputs, outputs);
	printk("rc %d label %d\nEND\n", rc, label);
	return 0;
}
