/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of the arguments of user threads. An invalid one ends the thread (kernel oops). */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/linker/linker-defs.h>

#include <opwest/accelerator.h>

#include "syscalls_zephyr.h"

#define VERIFY_DEVICE(dev) K_OOPS(K_SYSCALL_OBJ(dev, K_OBJ_DRIVER_OPWEST_ACCELERATOR))

static bool is_constant(const void *data, size_t size)
{
	const uintptr_t first = (uintptr_t)data;
	const uintptr_t begin = (uintptr_t)__rodata_region_start;
	const uintptr_t end = (uintptr_t)__rodata_region_end;

	return first >= begin && first <= end && size <= end - first;
}

static bool is_constant_string(const char *text)
{
	const char *const end = __rodata_region_end;

	return is_constant(text, 1U) && strnlen(text, (size_t)(end - text)) < (size_t)(end - text);
}

/*
 * A driver keeps a program until another one is loaded, and the device reads it. A copy would have
 * to last as long, and memory of a user thread can change after the check: only constants of the
 * image, which no thread can write, are accepted.
 */
static bool is_program(const struct opwest_program *program)
{
	if (program == NULL) {
		return true;
	}
	return (uintptr_t)program % alignof(struct opwest_program) == 0U &&
	       is_constant(program, sizeof(*program)) &&
	       is_constant(program->data, program->size) && is_constant_string(program->name);
}

static inline int z_vrfy_opwest_accelerator_info(const struct device *dev,
						 struct opwest_accelerator_info *info)
{
	struct opwest_accelerator_info own;
	int rc;

	VERIFY_DEVICE(dev);
	memset(&own, 0, sizeof(own)); /* its padding is copied too */
	rc = z_impl_opwest_accelerator_info(dev, &own);
	K_OOPS(k_usermode_to_copy(info, &own, sizeof(own)));
	return rc;
}

static inline int z_vrfy_opwest_accelerator_activate(const struct device *dev)
{
	VERIFY_DEVICE(dev);
	return z_impl_opwest_accelerator_activate(dev);
}

static inline int z_vrfy_opwest_accelerator_check(const struct device *dev,
						  const struct opwest_program *program)
{
	VERIFY_DEVICE(dev);
	return is_program(program) ? z_impl_opwest_accelerator_check(dev, program) : -EFAULT;
}

static inline int z_vrfy_opwest_accelerator_open(const struct device *dev, int32_t timeout_ms)
{
	VERIFY_DEVICE(dev);
	return z_impl_opwest_accelerator_open(dev, timeout_ms);
}

static inline int z_vrfy_opwest_accelerator_load(const struct device *dev,
						 const struct opwest_program *program)
{
	VERIFY_DEVICE(dev);
	return is_program(program) ? z_impl_opwest_accelerator_load(dev, program) : -EFAULT;
}

static inline uint32_t z_vrfy_opwest_accelerator_enqueued(const struct device *dev)
{
	VERIFY_DEVICE(dev);
	return z_impl_opwest_accelerator_enqueued(dev);
}

static inline int z_vrfy_opwest_accelerator_sync(const struct device *dev, uint32_t leave,
						 int32_t timeout_ms)
{
	VERIFY_DEVICE(dev);
	return z_impl_opwest_accelerator_sync(dev, leave, timeout_ms);
}

static inline void z_vrfy_opwest_accelerator_wake(const struct device *dev)
{
	VERIFY_DEVICE(dev);
	z_impl_opwest_accelerator_wake(dev);
}

/* The driver calls the function in supervisor mode: a user thread must not select it. */
static inline int z_vrfy_opwest_accelerator_notify(const struct device *dev,
						   opwest_accelerator_callback_t callback,
						   void *user)
{
	ARG_UNUSED(callback);
	ARG_UNUSED(user);
	VERIFY_DEVICE(dev);
	return -EPERM;
}

static inline int z_vrfy_opwest_accelerator_close(const struct device *dev)
{
	VERIFY_DEVICE(dev);
	return z_impl_opwest_accelerator_close(dev);
}

static inline int z_vrfy_opwest_accelerator_deactivate(const struct device *dev)
{
	VERIFY_DEVICE(dev);
	return z_impl_opwest_accelerator_deactivate(dev);
}

#if __has_include(<zephyr/syscall_list.h>)
#include <zephyr/syscalls/opwest_accelerator_info_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_activate_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_check_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_open_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_load_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_enqueued_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_sync_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_wake_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_notify_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_close_mrsh.c>
#include <zephyr/syscalls/opwest_accelerator_deactivate_mrsh.c>
#else /* before Zephyr 3.7 */
#include <syscalls/opwest_accelerator_info_mrsh.c>
#include <syscalls/opwest_accelerator_activate_mrsh.c>
#include <syscalls/opwest_accelerator_check_mrsh.c>
#include <syscalls/opwest_accelerator_open_mrsh.c>
#include <syscalls/opwest_accelerator_load_mrsh.c>
#include <syscalls/opwest_accelerator_enqueued_mrsh.c>
#include <syscalls/opwest_accelerator_sync_mrsh.c>
#include <syscalls/opwest_accelerator_wake_mrsh.c>
#include <syscalls/opwest_accelerator_notify_mrsh.c>
#include <syscalls/opwest_accelerator_close_mrsh.c>
#include <syscalls/opwest_accelerator_deactivate_mrsh.c>
#endif
