/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's clock for images that are host programs: their own time does not advance.
 * Compiled with the host's C library, outside of Zephyr.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 199309L
#endif
#include <stdint.h>
#include <time.h>

uint64_t opwest_native_nanoseconds(void);

uint64_t opwest_native_nanoseconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}
