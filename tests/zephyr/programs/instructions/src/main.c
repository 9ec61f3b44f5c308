/* SPDX-License-Identifier: Apache-2.0 */
/* Code in a slot of RAM that is written and called, replaced and called again. */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <opwest/bundle_storage_zephyr.h>

OPWEST_BUNDLE_FLASH_DEFINE(storage, bundle_records, bundle_slot0, bundle_slot1);

/* RISC-V: addi a0, zero, number; jalr zero, 0(ra) */
static int run(uint32_t number)
{
	const uint32_t code[2] = {number << 20 | 0x513U, 0x8067U};
	const struct opwest_bundle_slot *const slot = &storage.storage.slots[0];
	int (*const function)(void) = (int (*)(void))(uintptr_t)slot->memory;
	int rc = storage.storage.api->erase(&storage.storage, 0U);

	if (rc == 0) {
		rc = storage.storage.api->write(&storage.storage, 0U, 0U, (const uint8_t *)code,
						sizeof(code));
	}
	if (rc == 0) {
		rc = storage.storage.api->synchronise(&storage.storage, 0U);
	}
	return rc != 0 ? rc : function();
}

int main(void)
{
	printk("%d %d\n", run(7U), run(1234U));
	printk("END\n");
	return 0;
}
