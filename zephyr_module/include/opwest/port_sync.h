/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What drivers need of the system around them: mutexes, semaphores, a thread, the time.
 *
 * For drivers of accelerators only; the core that models link with needs none of it. On Zephyr
 * these are kernel objects, on a host POSIX threads. Nothing allocates memory.
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

/** A deadline that never comes. */
#define OPWEST_PORT_NEVER INT64_MAX

/** What a thread runs, with the device that it was started for. */
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

/** A thread that works for one device. */
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
		.mutex = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER,             \
		.count = (initial), .limit = (maximum),                                            \
	}
#endif

/**
 * @brief Make a mutex, unlocked.
 *
 * @param mutex The mutex.
 */
void opwest_port_mutex_init(struct opwest_port_mutex *mutex);

/**
 * @brief Lock a mutex, however long that takes.
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
 * @brief Make a semaphore.
 *
 * @param sem     The semaphore.
 * @param initial Its count.
 * @param maximum What its count never exceeds, 1 at least.
 */
void opwest_port_sem_init(struct opwest_port_sem *sem, uint32_t initial, uint32_t maximum);

/**
 * @brief Add one to a semaphore that is below its maximum, and wake a thread that waits for it.
 *
 * @param sem The semaphore.
 */
void opwest_port_sem_give(struct opwest_port_sem *sem);

/**
 * @brief Take one from a semaphore, or wait for it.
 *
 * @param sem        The semaphore.
 * @param timeout_ms How long to wait, milliseconds; 0 tries, a negative number waits forever.
 *
 * @retval 0          Taken.
 * @retval -ETIMEDOUT It stayed at 0.
 */
int opwest_port_sem_take(struct opwest_port_sem *sem, int32_t timeout_ms);

/**
 * @brief Take one from a semaphore, or wait for it until a moment.
 *
 * @param sem         The semaphore.
 * @param deadline_us The moment, in the time of opwest_port_clock_us(), or OPWEST_PORT_NEVER.
 *
 * @retval 0          Taken.
 * @retval -ETIMEDOUT It stayed at 0.
 */
int opwest_port_sem_take_until(struct opwest_port_sem *sem, int64_t deadline_us);

/**
 * @brief Start a thread.
 *
 * @param thread Its memory; not that of a running thread.
 * @param entry  What it runs; it ends when this returns.
 * @param dev    What it works for.
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
 * @brief Tell the time since some moment before.
 *
 * On Zephyr it advances by ticks, and on simulators it is simulated.
 *
 * @return Microseconds
 */
int64_t opwest_port_clock_us(void);

/**
 * @brief Tell the moment at which a time-out ends that begins now.
 *
 * @param timeout_ms Milliseconds; a negative number is forever.
 *
 * @return Microseconds in the time of opwest_port_clock_us(), or OPWEST_PORT_NEVER
 */
static inline int64_t opwest_port_deadline(int32_t timeout_ms)
{
	return timeout_ms < 0 ? OPWEST_PORT_NEVER
			      : opwest_port_clock_us() + (int64_t)timeout_ms * 1000;
}

/**
 * @brief Let time pass.
 *
 * @param duration_us Microseconds, at least.
 */
void opwest_port_sleep_us(uint32_t duration_us);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PORT_SYNC_H_ */
