/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/timing/timing.h>
#include <zephyr/tracing/tracing.h>

#include <opwest/port_profile.h>

#if defined(CONFIG_OPWEST_PROFILE_CLOCK_HOST)

uint64_t opwest_native_nanoseconds(void);

uint64_t opwest_port_profile_counter(void)
{
	return opwest_native_nanoseconds();
}

uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end)
{
	return end - begin;
}

uint64_t opwest_port_profile_frequency(void)
{
	return NSEC_PER_SEC;
}

#elif defined(CONFIG_OPWEST_PROFILE_CLOCK_KERNEL)

uint64_t opwest_port_profile_counter(void)
{
	return k_cycle_get_32();
}

uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end)
{
	return (uint32_t)end - (uint32_t)begin;
}

uint64_t opwest_port_profile_frequency(void)
{
	return sys_clock_hw_cycles_per_sec();
}

#else

uint64_t opwest_port_profile_counter(void)
{
	return timing_counter_get();
}

uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end)
{
	timing_t from = (timing_t)begin;
	timing_t to = (timing_t)end;

	return timing_cycles_get(&from, &to);
}

uint64_t opwest_port_profile_frequency(void)
{
	return timing_freq_get();
}

static int start(void)
{
	timing_init();
	timing_start();
	return 0;
}

SYS_INIT(start, APPLICATION, CONFIG_APPLICATION_INIT_PRIORITY);

#endif

void opwest_port_profile_trace(const char *name, uint32_t index, bool begins)
{
#if defined(CONFIG_OPWEST_TRACE) && !defined(OPWEST_NO_NAMED_EVENTS)
	sys_trace_named_event(name, index, begins ? 1U : 0U);
#else
	ARG_UNUSED(name);
	ARG_UNUSED(index);
	ARG_UNUSED(begins);
#endif
}
