/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The verification of system calls, with the names of Zephyr 3.6 and later.
 */
#ifndef OPWEST_SYSCALLS_ZEPHYR_H_
#define OPWEST_SYSCALLS_ZEPHYR_H_

#if __has_include(<zephyr/internal/syscall_handler.h>)
#include <zephyr/internal/syscall_handler.h>
#else
#include <zephyr/syscall_handler.h>
#endif

#ifndef K_OOPS
#define K_OOPS(condition)                    Z_OOPS(condition)
#define K_SYSCALL_OBJ(object, type)          Z_SYSCALL_OBJ(object, type)
#define K_SYSCALL_MEMORY_READ(data, size)    Z_SYSCALL_MEMORY_READ(data, size)
#define K_SYSCALL_MEMORY_WRITE(data, size)   Z_SYSCALL_MEMORY_WRITE(data, size)
#define k_usermode_from_copy(to, from, size) z_user_from_copy(to, from, size)
#define k_usermode_to_copy(to, from, size)   z_user_to_copy(to, from, size)
#endif

#endif /* OPWEST_SYSCALLS_ZEPHYR_H_ */
