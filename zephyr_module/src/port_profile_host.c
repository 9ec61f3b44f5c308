/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime(), under -std=c11 too */
#include <time.h>

#include <opwest/port_profile.h>

/* Nanoseconds, because the clock frequency of host processors varies. */
uint64_t opwest_port_profile_counter(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end)
{
	return end - begin;
}

uint64_t opwest_port_profile_frequency(void)
{
	return 1000000000U;
}

void opwest_port_profile_trace(const char *name, uint32_t index, bool begins)
{
	(void)name;
	(void)index;
	(void)begins;
}
