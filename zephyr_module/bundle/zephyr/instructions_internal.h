/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Caches after code was written: results of Zephyr's functions, and instruction fetches.
 */
#ifndef OPWEST_INSTRUCTIONS_INTERNAL_H_
#define OPWEST_INSTRUCTIONS_INTERNAL_H_

#include <errno.h>

#include <zephyr/sys/util.h>

/**
 * @brief Return the result of a sys_cache_data_*() function, without that of an absent cache.
 *
 * Zephyr returns -ENOTSUP if it manages no data cache, and if the driver of a cache lacks the
 * operation. Only the second one is a failure.
 *
 * @param rc The result of the function.
 *
 * @retval 0        Done, or Zephyr manages no data cache.
 * @retval -ENOTSUP The cache lacks the operation.
 * @return Another negative errno of the cache
 */
static inline int opwest_data_cache_result(int rc)
{
	const bool is_managed = IS_ENABLED(CONFIG_CACHE_MANAGEMENT) && IS_ENABLED(CONFIG_DCACHE);

	return rc == -ENOTSUP && !is_managed ? 0 : rc;
}

/**
 * @brief Make code that is in memory visible to the instruction fetches of all processors.
 *
 * On a thread: it may wait for other processors.
 *
 * @retval 0        The next call of the code executes what is in memory.
 * @retval -ENOTSUP There is no way on this system: an instruction cache that Zephyr does not
 *                  manage, RISC-V without Zifencei, or several harts without IPI work items.
 * @return Another negative errno of the cache
 */
int opwest_instructions_changed(void);

#endif /* OPWEST_INSTRUCTIONS_INTERNAL_H_ */
