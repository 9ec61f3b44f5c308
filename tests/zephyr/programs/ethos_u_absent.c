/* SPDX-License-Identifier: Apache-2.0 */
/* A model on an NPU that reads as zero: its devices cannot be activated. */
#include <stdio.h>

#include <zephyr/device.h>
#include <opwest/devices.h>
#include <opwest/ethos_u.h>

#include "ethos_u_registers.h"

static const struct opwest_device devices[] = {
	{.name = "npu2", .timeout_ms = 100, .flags = OPWEST_DEVICE_HOOKS},
};
static const struct opwest_device_set set = {.model = "absent", .devices = devices, .count = 1};
static struct opwest_slot slots[1] = {{.dev = DEVICE_DT_GET(DT_NODELABEL(absent))}};
static struct opwest_status status = OPWEST_STATUS_INIT;

void activate_absent(void)
{
	const int rc = opwest_devices_activate(&set, slots, &status);

	printf("absent: activate %d, handle %d\n", rc,
	       opwest_ethos_u_driver(slots[0].dev) != NULL);
}
