/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which runs acquire devices. Reads models from standard input, one a line:
 *
 *     MEMBERS (handle first last)...
 *
 * Writes the acquiring step of every handle, -1 for none. A member is used from step `first` to
 * before step `last`. Handles are addresses in ascending order.
 */
#include <stdio.h>

#include "devices_internal.h"

#define HANDLES 4
#define MEMBERS 6

int main(void)
{
	static const struct device handles[HANDLES];
	struct opwest_device devices[MEMBERS];
	struct opwest_slot slots[MEMBERS];
	struct opwest_device_set set = {.model = "holds", .devices = devices};

	while (scanf("%u", &set.count) == 1 && set.count <= MEMBERS) {
		int acquired[HANDLES] = {-1, -1, -1, -1};

		for (uint32_t i = 0; i < set.count; i++) {
			unsigned int handle, first, last;

			if (scanf("%u %u %u", &handle, &first, &last) != 3 || handle >= HANDLES) {
				return 2;
			}
			devices[i] = (struct opwest_device){
				.name = "h",
				.first_step = (uint16_t)first,
				.last_step = (uint16_t)last,
				.flags = OPWEST_DEVICE_HOOKS,
			};
			slots[i] = (struct opwest_slot)OPWEST_SLOT_INIT;
			slots[i].dev = &handles[handle];
		}
		opwest_devices_order(&set, slots);
		for (uint32_t i = 0; i < set.count; i++) {
			if (slots[i].leader == i) {
				acquired[slots[i].dev - handles] = slots[i].acquired;
			}
		}
		printf("%d %d %d %d\n", acquired[0], acquired[1], acquired[2], acquired[3]);
	}
	return 0;
}
