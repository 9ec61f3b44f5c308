/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements with a test counter and a test trace; the counter has 32 bits, so that it wraps. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <opwest/port_profile.h>
#include <opwest/profile.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%d: %s\n", __LINE__, #condition);                                  \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static uint32_t counter;
static char events[128];

uint64_t opwest_port_profile_counter(void)
{
	return counter;
}

uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end)
{
	return (uint32_t)end - (uint32_t)begin;
}

uint64_t opwest_port_profile_frequency(void)
{
	return 12345678901U;
}

void opwest_port_profile_trace(const char *name, uint32_t index, bool begins)
{
	const size_t used = strlen(events);

	(void)snprintf(events + used, sizeof(events) - used, "%c%s%" PRIu32, begins ? '+' : '-', name, index);
}

static const struct opwest_point points[] = {
	{"model", UINT16_MAX, OPWEST_NO_DEVICE, OPWEST_POINT_RUN},
	{"op", 0, OPWEST_NO_DEVICE, OPWEST_POINT_STEP},
	{"npu", 0, 0, OPWEST_POINT_WAIT},
};

static void take(struct opwest_measure *measures, uint32_t index, uint32_t cycles)
{
	opwest_profile_begin(measures, points, index);
	counter += cycles;
	opwest_profile_end(measures, points, index);
}

static int counts(void)
{
	struct opwest_measure measures[3] = {{0U, 0U, 0U, 0U, 0U, 0U, 0U}};

	counter = UINT32_MAX - 5U;
	take(measures, 1, 10);
	CHECK(measures[1].last == 10 && measures[1].min == 10 && measures[1].max == 10);
	take(measures, 1, 30);
	take(measures, 1, 0);
	take(measures, 1, 20);
	CHECK(measures[1].last == 20 && measures[1].min == 0 && measures[1].max == 30);
	CHECK(measures[1].total == 60 && measures[1].runs == 4);
	CHECK(measures[0].runs == 0 && measures[2].runs == 0);

	take(measures, 2, UINT32_MAX);
	take(measures, 2, UINT32_MAX);
	CHECK(measures[2].total == 2ULL * UINT32_MAX && measures[2].min == UINT32_MAX);

	/* At the limit of the count the sum ends too, so that their quotient stays the mean. */
	measures[1].runs = UINT32_MAX;
	take(measures, 1, 7);
	CHECK(measures[1].runs == UINT32_MAX && measures[1].total == 60 && measures[1].last == 7);

	opwest_profile_reset(measures, 2);
	CHECK(measures[1].runs == 0 && measures[1].total == 0 && measures[1].max == 0);
	CHECK(measures[2].runs == 2);
	return 0;
}

/* Points are nested in the point of run, which is not an event: a failure would leave it open. */
static int nests_and_traces(void)
{
	struct opwest_measure measures[3] = {{0U, 0U, 0U, 0U, 0U, 0U, 0U}};

	events[0] = '\0';
	opwest_profile_begin(measures, points, 0);
	take(measures, 1, 5);
	take(measures, 2, 6);
	opwest_profile_end(measures, points, 0);
	CHECK(measures[0].total == 11 && measures[1].total == 5 && measures[2].total == 6);
	CHECK(strcmp(events, "+op1-op1+npu2-npu2") == 0);
	return 0;
}

static int names(void)
{
	CHECK(strcmp(opwest_point_kind_name(OPWEST_POINT_LAUNCH), "launch") == 0);
	CHECK(strcmp(opwest_point_kind_name(OPWEST_POINT_CACHE), "cache") == 0);
	CHECK(opwest_point_kind_name(6) == NULL && opwest_point_kind_name(UINT32_MAX) == NULL);
	CHECK(opwest_profile_frequency() == 12345678901U);
	return 0;
}

int main(void)
{
	return counts() | nests_and_traces() | names();
}
