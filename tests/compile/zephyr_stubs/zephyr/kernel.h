/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#pragma once

#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/toolchain.h>

#define CONFIG_KERNEL_INIT_PRIORITY_DEVICE 50
#define __subsystem

typedef uint64_t k_thread_stack_t;
typedef struct k_thread *k_tid_t;

#define STUB_STRUCT(name)                                                                          \
	struct name {                                                                              \
		int reserved;                                                                      \
	}
STUB_STRUCT(k_thread);
STUB_STRUCT(k_spinlock);
STUB_STRUCT(k_event);
STUB_STRUCT(k_timer);

#define K_KERNEL_STACK_DEFINE(name, size) k_thread_stack_t name[(size) / sizeof(k_thread_stack_t)]
#define K_KERNEL_STACK_SIZEOF(name)       sizeof(name)
#define K_APP_BMEM(partition)             Z_GENERIC_SECTION(data_smem_##partition##_bss)
#define K_APP_DMEM(partition)             Z_GENERIC_SECTION(data_smem_##partition##_data)

#define DEVICE_DEFINE(id, title, init, pm, state, constant, level, priority, functions)             \
	static struct {                                                                            \
		const struct device device;                                                        \
		int (*start)(const struct device *device);                                         \
		void *data;                                                                        \
	} stub_##id = {{title, constant, functions}, init, state};                                 \
	const void *stub_of_##id(void);                                                            \
	const void *stub_of_##id(void)                                                             \
	{                                                                                          \
		return &stub_##id;                                                                 \
	}                                                                                          \
	struct stub_end
