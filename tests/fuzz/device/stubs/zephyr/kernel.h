/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, identified by number only. */
#ifndef STUB_KERNEL_H_
#define STUB_KERNEL_H_

struct k_spinlock {
	int held;
};
typedef int k_spinlock_key_t;

const void *k_current_get(void);
k_spinlock_key_t k_spin_lock(struct k_spinlock *lock);
void k_spin_unlock(struct k_spinlock *lock, k_spinlock_key_t key);

#endif
