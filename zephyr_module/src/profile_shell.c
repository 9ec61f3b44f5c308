/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <zephyr/shell/shell.h>

#include <opwest/profile.h>

#if defined(CONFIG_OPWEST_PROFILE_CLOCK_HOST)
#define UNIT "host time in ns"
#elif defined(CONFIG_QEMU_TARGET)
#define UNIT "ticks of QEMU's timer (not cycles)"
#else
#define UNIT "cycles"
#endif

static void print_point(const struct shell *sh, const struct opwest_profiled *profiled,
			uint32_t index)
{
	const struct opwest_point *const point = &profiled->points[index];
	const struct opwest_measure *const measure = &profiled->measures[index];
	const bool on_device =
		point->kind != OPWEST_POINT_WAIT && point->device != OPWEST_NO_DEVICE;

	if (point->kind == OPWEST_POINT_STEP || point->kind == OPWEST_POINT_LAUNCH) {
		shell_fprintf(sh, SHELL_NORMAL, "  %5u", point->step);
	} else {
		shell_fprintf(sh, SHELL_NORMAL, "  %5s", "");
	}
	shell_print(sh, " %-6s %-24s %-10s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64,
		    opwest_point_kind_name(point->kind), point->name,
		    on_device ? profiled->model->devices[point->device].name : "", measure->last,
		    measure->min, measure->max,
		    measure->runs != 0U ? measure->total / measure->runs : 0U);
}

static void print_profile(const struct shell *sh, const struct opwest_profiled *profiled)
{
	shell_print(sh, "%s, %s: %" PRIu32 " runs, " UNIT " at %" PRIu64 " Hz",
		    profiled->model->name, profiled->workspace, profiled->measures[0].runs,
		    opwest_profile_frequency());
	shell_print(sh, "  %5s %-6s %-24s %-10s %10s %10s %10s %10s", "step", "what", "name",
		    "device", "last", "min", "max", "mean");
	for (uint32_t i = 0; i < profiled->count; i++) {
		print_point(sh, profiled, i);
	}
}

static int each(const struct shell *sh, size_t argc, char **argv,
		void (*act)(const struct shell *sh, const struct opwest_profiled *profiled))
{
	bool found = argc < 2U;

	STRUCT_SECTION_FOREACH(opwest_profiled, profiled) {
		if (argc < 2U || strcmp(profiled->model->name, argv[1]) == 0) {
			found = true;
			act(sh, profiled);
		}
	}
	if (!found) {
		shell_error(sh, "unknown model '%s'; \"opwest models\" lists the models", argv[1]);
		return -ENOENT;
	}
	return 0;
}

static int cmd_profile(const struct shell *sh, size_t argc, char **argv)
{
	const int rc = each(sh, argc, argv, print_profile);

#ifdef CONFIG_OPWEST_PROFILE_DEVICES
	/* A device is shared by models. */
	if (rc == 0) {
		opwest_profile_devices_print(sh);
	}
#endif
	return rc;
}

static void reset(const struct shell *sh, const struct opwest_profiled *profiled)
{
	ARG_UNUSED(sh);
	opwest_profile_reset(profiled->measures, profiled->count);
}

static int cmd_profile_reset(const struct shell *sh, size_t argc, char **argv)
{
	const int rc = each(sh, argc, argv, reset);

#ifdef CONFIG_OPWEST_PROFILE_DEVICES
	if (rc == 0) {
		opwest_profile_devices_reset();
	}
#endif
	return rc;
}

SHELL_SUBCMD_ADD((opwest), profile, NULL,
		 "Show the times of each step, for one model or all, and of devices.\n"
		 "Usage: opwest profile [MODEL]",
		 cmd_profile, 1, 1);
SHELL_SUBCMD_ADD((opwest), profile_reset, NULL,
		 "Reset the measurements; no run may be in progress.\n"
		 "Usage: opwest profile_reset [MODEL]",
		 cmd_profile_reset, 1, 1);
