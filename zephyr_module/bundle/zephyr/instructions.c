/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <zephyr/cache.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/barrier.h>
#if __has_include(<zephyr/version.h>)
#include <zephyr/version.h>
#else /* Zephyr 3.4 */
#include <version.h>
#endif

#ifdef CONFIG_CPU_CORTEX_M
#include <zephyr/sys/sys_io.h>
#endif

#include "instructions_internal.h"

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

/* The Configuration and Control Register of Cortex-M; reserved bits are 0 without a cache. */
#define CORTEX_M_CCR    0xe000ed14U
#define CORTEX_M_CCR_IC BIT(17)

/* Return whether there may be an instruction cache, although Zephyr manages none. */
static bool has_unmanaged_cache(void)
{
#if defined(CONFIG_CPU_CORTEX_M)
	/* Zephyr does not enable it then, but a boot loader may. */
	return (sys_read32(CORTEX_M_CCR) & CORTEX_M_CCR_IC) != 0U;
#else
	return IS_ENABLED(CONFIG_CPU_HAS_ICACHE);
#endif
}

static int invalidate_cache(void)
{
	const int rc = sys_cache_instr_invd_all();

	if (rc != -ENOTSUP) {
		return rc;
	}
	if (IS_ENABLED(CONFIG_RISCV)) {
		return 0; /* fence.i is sufficient */
	}
	if (IS_ENABLED(CONFIG_CACHE_MANAGEMENT) && IS_ENABLED(CONFIG_ICACHE)) {
		return -ENOTSUP;
	}
	if (has_unmanaged_cache()) {
		LOG_ERR("the instruction cache requires CONFIG_CACHE_MANAGEMENT");
		return -ENOTSUP;
	}
	return 0;
}

#if defined(CONFIG_SMP) && CONFIG_MP_MAX_NUM_CPUS > 1
#define HAS_OTHER_HARTS 1
#endif
#if defined(CONFIG_SCHED_IPI_SUPPORTED) && KERNEL_VERSION_NUMBER >= ZEPHYR_VERSION(4, 4, 0)
#define HAS_IPI_WORK 1
#endif

#if !defined(CONFIG_RISCV)

static int fence(void)
{
	barrier_isync_fence_full();
	return 0;
}

#elif !defined(CONFIG_RISCV_ISA_EXT_ZIFENCEI) ||                                                   \
	(defined(HAS_OTHER_HARTS) && !defined(HAS_IPI_WORK))

static int fence(void)
{
	LOG_ERR("fetches of written code require CONFIG_RISCV_ISA_EXT_ZIFENCEI, and Zephyr 4.4 "
		"with several harts");
	return -ENOTSUP;
}

#else

/* RISC-V unprivileged ISA, "Zifencei": later fetches of this hart see its earlier stores. */
static void fence_hart(void)
{
	__asm__ volatile("fence.i" : : : "memory");
}

#ifndef HAS_OTHER_HARTS

static int fence(void)
{
	fence_hart();
	return 0;
}

#else

static struct k_ipi_work work;
static K_MUTEX_DEFINE(lock);
static bool is_initialised;

static void fence_other_hart(struct k_ipi_work *unused)
{
	ARG_UNUSED(unused);
	fence_hart();
}

static int fence(void)
{
	unsigned int key;
	int rc;

	(void)k_mutex_lock(&lock, K_FOREVER);
	if (!is_initialised) {
		k_ipi_work_init(&work);
		is_initialised = true;
	}
	/* Zephyr leaves out the current hart: the thread stays on it until the others are asked. */
	key = arch_irq_lock();
	fence_hart();
	rc = k_ipi_work_add(&work, BIT_MASK(arch_num_cpus()), fence_other_hart);
	if (rc == 0) {
		k_ipi_work_signal();
	}
	arch_irq_unlock(key);
	if (rc == 0) {
		rc = k_ipi_work_wait(&work, K_FOREVER);
	}
	(void)k_mutex_unlock(&lock);
	return rc;
}

#endif
#endif

int opwest_instructions_changed(void)
{
	int rc;

	/* Other harts must see the stores before their own fence. */
	barrier_dsync_fence_full();
	rc = invalidate_cache();
	barrier_dsync_fence_full();
	return rc != 0 ? rc : fence();
}
