/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include <zephyr/shell/shell.h>

#include <opwest/profile_devices.h>

static void print_events(const struct shell *sh, const struct opwest_device_measure *measure)
{
	shell_fprintf(sh, SHELL_NORMAL, "  %5s last of events", "");
	for (uint32_t i = 0; i < OPWEST_PROFILE_EVENTS; i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%s %u: %" PRIu32, i != 0U ? "," : "",
			      measure->events[i], measure->last[i]);
	}
	shell_print(sh, "%s", "");
}

static void print_entry(const struct shell *sh, const struct opwest_device_measure *measure)
{
	const struct opwest_measure *const cycles = &measure->cycles;

	if (measure->step == OPWEST_NO_STEP) {
		shell_fprintf(sh, SHELL_NORMAL, "  %5s", "");
	} else {
		shell_fprintf(sh, SHELL_NORMAL, "  %5u", measure->step);
	}
	shell_print(sh, " %-24s %10" PRIu32 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64,
		    measure->program->name != NULL ? measure->program->name : "", cycles->runs,
		    cycles->last, cycles->min, cycles->max,
		    cycles->runs != 0U ? cycles->total / cycles->runs : 0U);
	print_events(sh, measure);
}

void opwest_profile_devices_print(const struct shell *sh)
{
	STRUCT_SECTION_FOREACH(opwest_measured_device, measured) {
		struct opwest_device_measure measure;

		shell_print(sh, "%s: cycles of the device", measured->dev->name);
		shell_print(sh, "  %5s %-24s %10s %10s %10s %10s %10s", "step", "program", "jobs",
			    "last", "min", "max", "mean");
		for (uint32_t i = 0; measured->read(measured->dev, i, &measure) == 0; i++) {
			print_entry(sh, &measure);
		}
	}
}

void opwest_profile_devices_reset(void)
{
	STRUCT_SECTION_FOREACH(opwest_measured_device, measured) {
		measured->reset(measured->dev);
	}
}
