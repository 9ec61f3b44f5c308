/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief A flag that one thread at a time can set, without waiting.
 */
#ifndef OPWEST_EXCLUSIVE_H_
#define OPWEST_EXCLUSIVE_H_

#include <stdbool.h>

#ifdef __ZEPHYR__
#include <zephyr/sys/atomic.h>

/** The flag; initially zero. */
typedef atomic_t opwest_exclusive_t;

/**
 * @brief Set the flag.
 *
 * @param flag The flag.
 *
 * @retval true  The caller has set it, and has to clear it.
 * @retval false It was set.
 */
static inline bool opwest_exclusive_take(opwest_exclusive_t *flag)
{
	return atomic_cas(flag, 0, 1);
}

/**
 * @brief Clear the flag.
 *
 * @param flag The flag, set by the caller.
 */
static inline void opwest_exclusive_give(opwest_exclusive_t *flag)
{
	(void)atomic_set(flag, 0);
}
#else
typedef int opwest_exclusive_t;

static inline bool opwest_exclusive_take(opwest_exclusive_t *flag)
{
	return __atomic_exchange_n(flag, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void opwest_exclusive_give(opwest_exclusive_t *flag)
{
	__atomic_store_n(flag, 0, __ATOMIC_RELEASE);
}
#endif

#endif /* OPWEST_EXCLUSIVE_H_ */
