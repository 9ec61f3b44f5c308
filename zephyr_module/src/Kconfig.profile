# SPDX-License-Identifier: Apache-2.0

config OPWEST_PROFILE
	bool "Measure what the steps of a model take"
	select TIMING_FUNCTIONS
	imply INIT_STACKS
	imply THREAD_STACK_INFO
	help
	  Every workspace counts the cycles of each step, of waiting for each
	  device and of the whole run: last, least, most, total. "opwest
	  profile" in the shell and "opwest run --profile" on the host show
	  them. Costs 48 bytes of RAM a step in every workspace, and two calls
	  a step. Without it run is the same code as if there was no such
	  option.

if OPWEST_PROFILE

choice OPWEST_PROFILE_CLOCK
	prompt "Counter"
	default OPWEST_PROFILE_CLOCK_HOST if NATIVE_LIBRARY
	default OPWEST_PROFILE_CLOCK_KERNEL if QEMU_TARGET && CPU_CORTEX_M
	default OPWEST_PROFILE_CLOCK_TIMING

config OPWEST_PROFILE_CLOCK_TIMING
	bool "Zephyr's timing functions"
	help
	  The finest that the processor has; on Cortex-M from ARMv7-M on the
	  cycle counter of the DWT.

config OPWEST_PROFILE_CLOCK_KERNEL
	bool "The kernel's cycle counter"
	help
	  For QEMU, whose Cortex-M has no cycle counter in the DWT.

config OPWEST_PROFILE_CLOCK_HOST
	bool "The host's clock"
	depends on NATIVE_LIBRARY
	help
	  Nanoseconds of the machine that native_sim runs on, whose own time
	  stands still while code runs.

endchoice

config OPWEST_TRACE
	bool "Write an event to the trace where a step begins and ends"
	depends on TRACING
	default y
	help
	  Named events (sys_trace_named_event(), from Zephyr 4.0 on): the name
	  is that of the operator, or of the device that is waited for; the
	  first number is the point, as "opwest profile" lists them from 0; the
	  second is 1 where it begins, 0 where it ends.

endif # OPWEST_PROFILE
