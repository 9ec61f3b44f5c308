/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <time.h>

#include <opwest/port_sync.h>

#define US_PER_S  1000000
#define NS_PER_US 1000

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 30)
#define HAS_CLOCKWAIT 1
/* A function of POSIX.1-2024, which glibc declares only among its extensions. */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *until);
#endif
#endif

#ifdef HAS_CLOCKWAIT
#define CLOCK CLOCK_MONOTONIC
#else
/* The default clock of condition variables; a user may set it during a wait. */
#define CLOCK CLOCK_REALTIME
#endif

static struct timespec timespec_of(int64_t us)
{
	const struct timespec at = {
		.tv_sec = (time_t)(us / US_PER_S),
		.tv_nsec = (long)(us % US_PER_S) * NS_PER_US,
	};

	return at;
}

void opwest_port_mutex_init(struct opwest_port_mutex *mutex)
{
	(void)pthread_mutex_init(&mutex->mutex, NULL);
}

void opwest_port_mutex_lock(struct opwest_port_mutex *mutex)
{
	(void)pthread_mutex_lock(&mutex->mutex);
}

void opwest_port_mutex_unlock(struct opwest_port_mutex *mutex)
{
	(void)pthread_mutex_unlock(&mutex->mutex);
}

void opwest_port_sem_init(struct opwest_port_sem *sem, uint32_t initial, uint32_t maximum)
{
	(void)pthread_mutex_init(&sem->mutex, NULL);
	(void)pthread_cond_init(&sem->given, NULL);
	sem->count = initial;
	sem->limit = maximum;
}

void opwest_port_sem_give(struct opwest_port_sem *sem)
{
	(void)pthread_mutex_lock(&sem->mutex);
	if (sem->count < sem->limit) {
		sem->count++;
	}
	(void)pthread_cond_signal(&sem->given);
	(void)pthread_mutex_unlock(&sem->mutex);
}

int opwest_port_sem_take(struct opwest_port_sem *sem, int32_t timeout_ms)
{
	return opwest_port_sem_take_until(sem, opwest_port_deadline(timeout_ms));
}

static int wait_until(pthread_cond_t *given, pthread_mutex_t *mutex, int64_t deadline_us)
{
	const struct timespec at = timespec_of(deadline_us);

	if (deadline_us == OPWEST_PORT_NEVER) {
		return pthread_cond_wait(given, mutex);
	}
#ifdef HAS_CLOCKWAIT
	return pthread_cond_clockwait(given, mutex, CLOCK, &at);
#else
	return pthread_cond_timedwait(given, mutex, &at);
#endif
}

int opwest_port_sem_take_until(struct opwest_port_sem *sem, int64_t deadline_us)
{
	int waited = 0;
	int rc = -ETIMEDOUT;

	(void)pthread_mutex_lock(&sem->mutex);
	while (sem->count == 0 && waited == 0) {
		waited = wait_until(&sem->given, &sem->mutex, deadline_us);
	}
	if (sem->count > 0) {
		sem->count--;
		rc = 0;
	}
	(void)pthread_mutex_unlock(&sem->mutex);
	return rc;
}

void opwest_port_owner_init(struct opwest_port_owner *owner)
{
	(void)pthread_mutex_init(&owner->mutex, NULL);
	(void)pthread_cond_init(&owner->given, NULL);
	owner->taken = false;
}

static bool is_mine(const struct opwest_port_owner *owner)
{
	return owner->taken && pthread_equal(owner->thread, pthread_self()) != 0;
}

int opwest_port_owner_take(struct opwest_port_owner *owner, int32_t timeout_ms)
{
	const int64_t deadline_us = opwest_port_deadline(timeout_ms);
	int waited = 0;
	int rc = -EBUSY;

	(void)pthread_mutex_lock(&owner->mutex);
	if (is_mine(owner)) {
		rc = -EDEADLK;
	} else {
		while (owner->taken && waited == 0) {
			waited = wait_until(&owner->given, &owner->mutex, deadline_us);
		}
		if (!owner->taken) {
			owner->taken = true;
			owner->thread = pthread_self();
			rc = 0;
		}
	}
	(void)pthread_mutex_unlock(&owner->mutex);
	return rc;
}

bool opwest_port_owner_is_mine(struct opwest_port_owner *owner)
{
	bool mine;

	(void)pthread_mutex_lock(&owner->mutex);
	mine = is_mine(owner);
	(void)pthread_mutex_unlock(&owner->mutex);
	return mine;
}

int opwest_port_owner_give(struct opwest_port_owner *owner)
{
	int rc = -EPERM;

	(void)pthread_mutex_lock(&owner->mutex);
	if (is_mine(owner)) {
		owner->taken = false;
		(void)pthread_cond_signal(&owner->given);
		rc = 0;
	}
	(void)pthread_mutex_unlock(&owner->mutex);
	return rc;
}

void opwest_port_spin_init(struct opwest_port_spin *spin)
{
	(void)pthread_mutex_init(&spin->mutex, NULL);
}

void opwest_port_spin_lock(struct opwest_port_spin *spin)
{
	(void)pthread_mutex_lock(&spin->mutex);
}

void opwest_port_spin_unlock(struct opwest_port_spin *spin)
{
	(void)pthread_mutex_unlock(&spin->mutex);
}

/* POSIX has one parameter type. */
static void *start(void *argument)
{
	const struct opwest_port_thread *const thread = argument;

	thread->entry(thread->dev);
	return NULL;
}

int opwest_port_thread_start(struct opwest_port_thread *thread, opwest_port_entry_t entry,
			     const struct device *dev)
{
	thread->entry = entry;
	thread->dev = dev;
	return -pthread_create(&thread->thread, NULL, start, thread);
}

void opwest_port_thread_join(struct opwest_port_thread *thread)
{
	(void)pthread_join(thread->thread, NULL);
}

int64_t opwest_port_clock_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

void opwest_port_sleep_us(uint32_t duration_us)
{
	struct timespec left = timespec_of(duration_us);

	while (nanosleep(&left, &left) != 0 && errno == EINTR) {
	}
}
