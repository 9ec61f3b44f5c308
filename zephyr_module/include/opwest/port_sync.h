/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The system's mutexes, semaphores, threads and time, for drivers.
 *
 * For drivers of accelerators and for bundles; models do not use it. On Zephyr these
 * are kernel objects, on a host POSIX threads. They allocate no memory.
 */
#ifndef OPWEST_PORT_SYNC_H_
#define OPWEST_PORT_SYNC_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/port.h>

#ifdef __ZEPHYR__
#include <zephyr/kernel.h>
#else
#include <pthread.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** No deadline. */
#define OPWEST_PORT_NEVER INT64_MAX

/** The function of a thread, called with its device. */
typedef void (*opwest_port_entry_t)(const struct device *dev);

/** A mutex. The thread that locked it unlocks it. */
struct opwest_port_mutex {
#ifdef __ZEPHYR__
	struct k_mutex mutex;
#else
	pthread_mutex_t mutex;
#endif
};

/** A counting semaphore. Any thread gives, any thread takes. */
struct opwest_port_sem {
#ifdef __ZEPHYR__
	struct k_sem sem;
#else
	pthread_mutex_t mutex;
	pthread_cond_t given;
	uint32_t count;
	uint32_t limit;
#endif
};

/**
 * The ownership of a device: the thread that took it gives it back.
 *
 * On Zephyr a mutex: a waiting thread of a higher priority raises the priority of the owner. On a
 * host, whose threads have equal priorities, it is not raised.
 */
struct opwest_port_owner {
#ifdef __ZEPHYR__
	struct k_mutex mutex;
#else
	pthread_mutex_t mutex;
	pthread_cond_t given;
	pthread_t thread;
	bool taken;
#endif
};

/** A lock for a few instructions, which ISRs can take too. */
struct opwest_port_spin {
#ifdef __ZEPHYR__
	struct k_spinlock lock;
	k_spinlock_key_t key;
#else
	pthread_mutex_t mutex;
#endif
};

/** A thread of one device. */
struct opwest_port_thread {
	opwest_port_entry_t entry;
	const struct device *dev;
#ifdef __ZEPHYR__
	struct k_thread thread;
	/** The caller sets these three before the start. */
	k_thread_stack_t *stack;
	size_t stack_size;
	int priority;
#else
	pthread_t thread;
#endif
};

#ifndef __ZEPHYR__
/** A mutex that needs no opwest_port_mutex_init(). */
#define OPWEST_PORT_MUTEX_HOST_INITIALIZER {.mutex = PTHREAD_MUTEX_INITIALIZER}

/** A semaphore that needs no opwest_port_sem_init(). */
#define OPWEST_PORT_SEM_HOST_INITIALIZER(initial, maximum)                                         \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER,                                                \
		.given = PTHREAD_COND_INITIALIZER,                                                 \
		.count = (initial),                                                                \
		.limit = (maximum),                                                                \
	}

/** An ownership that needs no opwest_port_owner_init(). */
#define OPWEST_PORT_OWNER_HOST_INITIALIZER                                                         \
	{.mutex = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER, .taken = false}

/** A lock that needs no opwest_port_spin_init(). */
#define OPWEST_PORT_SPIN_HOST_INITIALIZER {.mutex = PTHREAD_MUTEX_INITIALIZER}
#endif

/**
 * @brief Initialise a mutex, unlocked.
 *
 * @param mutex The mutex.
 */
void opwest_port_mutex_init(struct opwest_port_mutex *mutex);

/**
 * @brief Lock a mutex, without a time-out.
 *
 * @param mutex The mutex.
 */
void opwest_port_mutex_lock(struct opwest_port_mutex *mutex);

/**
 * @brief Unlock a mutex.
 *
 * @param mutex The mutex, locked by this thread.
 */
void opwest_port_mutex_unlock(struct opwest_port_mutex *mutex);

/**
 * @brief Initialise a semaphore.
 *
 * @param sem     The semaphore.
 * @param initial Its count.
 * @param maximum The largest count, at least 1.
 */
void opwest_port_sem_init(struct opwest_port_sem *sem, uint32_t initial, uint32_t maximum);

/**
 * @brief Increment a semaphore that is below its maximum, and wake a waiting thread. ISRs can call
 * it.
 *
 * @param sem The semaphore.
 */
void opwest_port_sem_give(struct opwest_port_sem *sem);

/**
 * @brief Decrement a semaphore, or wait for it.
 *
 * @param sem        The semaphore.
 * @param timeout_ms The longest wait, milliseconds; 0: none; negative: no limit.
 *
 * @retval 0          Taken.
 * @retval -ETIMEDOUT It stayed at 0.
 */
int opwest_port_sem_take(struct opwest_port_sem *sem, int32_t timeout_ms);

/**
 * @brief Decrement a semaphore, or wait for it until a deadline.
 *
 * @param sem         The semaphore.
 * @param deadline_us The deadline, in the time of opwest_port_clock_us(), or OPWEST_PORT_NEVER.
 *
 * @retval 0          Taken.
 * @retval -ETIMEDOUT It stayed at 0.
 */
int opwest_port_sem_take_until(struct opwest_port_sem *sem, int64_t deadline_us);

/**
 * @brief Initialise an ownership that no thread has.
 *
 * @param owner The ownership.
 */
void opwest_port_owner_init(struct opwest_port_owner *owner);

/**
 * @brief Take an ownership, or wait for it.
 *
 * @param owner      The ownership.
 * @param timeout_ms The longest wait, milliseconds; 0: none; negative: no limit.
 *
 * @retval 0        The calling thread has it.
 * @retval -EBUSY   Another thread kept it.
 * @retval -EDEADLK The calling thread has it already.
 */
int opwest_port_owner_take(struct opwest_port_owner *owner, int32_t timeout_ms);

/**
 * @brief Check whether the calling thread has an ownership.
 *
 * @param owner The ownership.
 *
 * @retval true  It has.
 * @retval false Another thread has it, or none.
 */
bool opwest_port_owner_is_mine(struct opwest_port_owner *owner);

/**
 * @brief Give an ownership back.
 *
 * @param owner The ownership.
 *
 * @retval 0      Another thread can take it.
 * @retval -EPERM The calling thread does not have it.
 */
int opwest_port_owner_give(struct opwest_port_owner *owner);

/**
 * @brief Initialise a lock, unlocked.
 *
 * @param spin The lock.
 */
void opwest_port_spin_init(struct opwest_port_spin *spin);

/**
 * @brief Lock for a few instructions, from a thread or an ISR. Do not block.
 *
 * A second lock is allowed during the first one if all code takes them in this order. Drivers call
 * opwest_accelerator_context_end() during a lock of their own, so that jobs end in order.
 *
 * @param spin The lock.
 */
void opwest_port_spin_lock(struct opwest_port_spin *spin);

/**
 * @brief Unlock.
 *
 * @param spin The lock, locked by the caller.
 */
void opwest_port_spin_unlock(struct opwest_port_spin *spin);

/**
 * @brief Start a thread.
 *
 * @param thread Its memory; not in use by a running thread.
 * @param entry  Its function; the thread ends when it returns.
 * @param dev    The device.
 *
 * @retval 0 It runs.
 * @return A negative errno of the system
 */
int opwest_port_thread_start(struct opwest_port_thread *thread, opwest_port_entry_t entry,
			     const struct device *dev);

/**
 * @brief Wait until a thread has ended.
 *
 * @param thread A thread that was started and not joined.
 */
void opwest_port_thread_join(struct opwest_port_thread *thread);

/**
 * @brief Return the time since an arbitrary start.
 *
 * On Zephyr it advances by ticks, and on simulators it is simulated.
 *
 * @return Microseconds
 */
int64_t opwest_port_clock_us(void);

/**
 * @brief Convert a time-out that begins now to a deadline.
 *
 * @param timeout_ms Milliseconds; negative: no deadline.
 *
 * @return Microseconds in the time of opwest_port_clock_us(), or OPWEST_PORT_NEVER
 */
static inline int64_t opwest_port_deadline(int32_t timeout_ms)
{
	return timeout_ms < 0 ? OPWEST_PORT_NEVER
			      : opwest_port_clock_us() + (int64_t)timeout_ms * 1000;
}

/**
 * @brief Sleep.
 *
 * @param duration_us Microseconds, at least.
 */
void opwest_port_sleep_us(uint32_t duration_us);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PORT_SYNC_H_ */
