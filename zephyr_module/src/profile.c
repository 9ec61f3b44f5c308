/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include <opwest/port_profile.h>
#include <opwest/profile.h>

/* The whole run is no event: after a failure it would not end. */
static void trace(const struct opwest_point *point, uint32_t index, bool begins)
{
	if (point->kind != OPWEST_POINT_RUN) {
		opwest_port_profile_trace(point->name, index, begins);
	}
}

/* The counter is read last here and first below, to measure only the point. */
void opwest_profile_begin(struct opwest_measure *measures, const struct opwest_point *points,
			  uint32_t index)
{
	trace(&points[index], index, true);
#ifdef CONFIG_OPWEST_CHECK_INPUTS
	opwest_input_check_begin(points, index);
#endif
	measures[index].begun = opwest_port_profile_counter();
}

void opwest_measure_add(struct opwest_measure *measure, uint64_t cycles)
{
	if (measure->runs == 0U || cycles < measure->min) {
		measure->min = cycles;
	}
	if (cycles > measure->max) {
		measure->max = cycles;
	}
	measure->last = cycles;
	/* At the limit of the count the sum ends too: their quotient stays the mean. */
	if (measure->runs != UINT32_MAX) {
		measure->total += cycles;
		measure->runs++;
	}
}

void opwest_profile_end(struct opwest_measure *measures, const struct opwest_point *points,
			uint32_t index)
{
	const uint64_t now = opwest_port_profile_counter();
	struct opwest_measure *const measure = &measures[index];

	opwest_measure_add(measure, opwest_port_profile_cycles(measure->begun, now));
	trace(&points[index], index, false);
#ifdef CONFIG_OPWEST_CHECK_INPUTS
	opwest_input_check_end(points, index);
#endif
#ifdef CONFIG_OPWEST_CHECK_STEPS
	opwest_profile_stop(measures, index);
#endif
}

void opwest_profile_reset(struct opwest_measure *measures, uint32_t count)
{
	memset(measures, 0, count * sizeof(*measures));
}

uint64_t opwest_profile_frequency(void)
{
	return opwest_port_profile_frequency();
}

const char *opwest_point_kind_name(uint32_t kind)
{
	static const char names[][8] = {
		[OPWEST_POINT_RUN] = "run",       [OPWEST_POINT_STEP] = "step",
		[OPWEST_POINT_LAUNCH] = "launch", [OPWEST_POINT_WAIT] = "wait",
		[OPWEST_POINT_CACHE] = "cache",   [OPWEST_POINT_COPY] = "copy",
	};

	return kind < OPWEST_ARRAY_SIZE(names) ? names[kind] : NULL;
}
