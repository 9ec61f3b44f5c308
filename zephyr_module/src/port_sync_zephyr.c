/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include <opwest/port_sync.h>

/* The longest wait, which 32-bit ticks can count too. */
#define MAX_WAIT_US ((int64_t)1 << 28)

/*
 * The kernel adds a tick to a relative time-out, so that a latency of two ticks would take three.
 */
static k_timeout_t timeout_until(int64_t deadline_us)
{
	const int64_t left = deadline_us - opwest_port_clock_us();

	if (left <= 0) {
		return K_NO_WAIT;
	}
#ifdef CONFIG_TIMEOUT_64BIT
	return K_TIMEOUT_ABS_US(deadline_us);
#else
	return K_USEC(MIN(left, MAX_WAIT_US));
#endif
}

void opwest_port_mutex_init(struct opwest_port_mutex *mutex)
{
	(void)k_mutex_init(&mutex->mutex);
}

void opwest_port_mutex_lock(struct opwest_port_mutex *mutex)
{
	(void)k_mutex_lock(&mutex->mutex, K_FOREVER);
}

void opwest_port_mutex_unlock(struct opwest_port_mutex *mutex)
{
	(void)k_mutex_unlock(&mutex->mutex);
}

void opwest_port_sem_init(struct opwest_port_sem *sem, uint32_t initial, uint32_t maximum)
{
	(void)k_sem_init(&sem->sem, initial, maximum);
}

void opwest_port_sem_give(struct opwest_port_sem *sem)
{
	k_sem_give(&sem->sem);
}

int opwest_port_sem_take(struct opwest_port_sem *sem, int32_t timeout_ms)
{
	return opwest_port_sem_take_until(sem, opwest_port_deadline(timeout_ms));
}

int opwest_port_sem_take_until(struct opwest_port_sem *sem, int64_t deadline_us)
{
	int rc;

	if (deadline_us == OPWEST_PORT_NEVER) {
		return k_sem_take(&sem->sem, K_FOREVER) == 0 ? 0 : -ETIMEDOUT;
	}
	do {
		rc = k_sem_take(&sem->sem, timeout_until(deadline_us));
	} while (rc != 0 && opwest_port_clock_us() < deadline_us);
	return rc == 0 ? 0 : -ETIMEDOUT;
}

void opwest_port_owner_init(struct opwest_port_owner *owner)
{
	(void)k_mutex_init(&owner->mutex);
}

/* The kernel's mutex can be locked again by its owner. */
static bool is_mine(const struct opwest_port_owner *owner)
{
	return owner->mutex.owner == k_current_get();
}

int opwest_port_owner_take(struct opwest_port_owner *owner, int32_t timeout_ms)
{
	if (is_mine(owner)) {
		return -EDEADLK;
	}
	return k_mutex_lock(&owner->mutex, timeout_ms < 0 ? K_FOREVER : K_MSEC(timeout_ms)) == 0
		       ? 0
		       : -EBUSY;
}

bool opwest_port_owner_is_mine(struct opwest_port_owner *owner)
{
	return is_mine(owner);
}

int opwest_port_owner_give(struct opwest_port_owner *owner)
{
	if (!is_mine(owner)) {
		return -EPERM;
	}
	return k_mutex_unlock(&owner->mutex);
}

void opwest_port_spin_init(struct opwest_port_spin *spin)
{
	/* The kernel's lock may have no members. */
	memset(spin, 0, sizeof(*spin));
}

void opwest_port_spin_lock(struct opwest_port_spin *spin)
{
	const k_spinlock_key_t key = k_spin_lock(&spin->lock);

	spin->key = key;
}

void opwest_port_spin_unlock(struct opwest_port_spin *spin)
{
	k_spin_unlock(&spin->lock, spin->key);
}

/* The parameter types of Zephyr. */
static void start(void *first, void *second, void *third)
{
	const struct opwest_port_thread *const thread = first;

	ARG_UNUSED(second);
	ARG_UNUSED(third);
	thread->entry(thread->dev);
}

int opwest_port_thread_start(struct opwest_port_thread *thread, opwest_port_entry_t entry,
			     const struct device *dev)
{
	thread->entry = entry;
	thread->dev = dev;
	(void)k_thread_create(&thread->thread, thread->stack, thread->stack_size, start, thread,
			      NULL, NULL, thread->priority, 0, K_NO_WAIT);
	(void)k_thread_name_set(&thread->thread, dev->name);
	return 0;
}

void opwest_port_thread_join(struct opwest_port_thread *thread)
{
	(void)k_thread_join(&thread->thread, K_FOREVER);
}

int64_t opwest_port_clock_us(void)
{
	return (int64_t)k_ticks_to_us_floor64((uint64_t)k_uptime_ticks());
}

void opwest_port_sleep_us(uint32_t duration_us)
{
	const int64_t deadline = opwest_port_clock_us() + duration_us;

	while (opwest_port_clock_us() < deadline) {
		(void)k_sleep(timeout_until(deadline));
	}
}
