/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/kernel.h>

#include <digits.h>
#include <digits_devicetree.h>

/* The first input of the test, behind the flash of mps2/an385 in memory, as in ../bundles. */
#define INPUT ((const int8_t *)0x21800000U)

DIGITS_WORKSPACE_DEFINE(workspace);
static const struct digits_devices devices = DIGITS_DEVICES_DT_INIT;

int main(void)
{
	int32_t label = -1;
	const struct digits_inputs inputs = {.image = INPUT};
	const struct digits_outputs outputs = {.label = &label};
	int rc = digits_open(&workspace, &devices);
	const unsigned int key = irq_lock();
	uint32_t ticks = k_cycle_get_32();

	rc = rc != 0 ? rc : digits_run(&inputs, &outputs, &workspace, &devices);
	ticks = k_cycle_get_32() - ticks;
	irq_unlock(key);
	printk("ticks: %d %u label %d\nEND\n", rc, ticks, label);
	return 0;
}
