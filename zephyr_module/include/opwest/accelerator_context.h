/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The state of every accelerator driver: activations, program, owner, jobs.
 *
 * For drivers only, as a member of their data. It implements the hooks of accelerator.h, except for
 * the work of the device itself. A driver reports every job with
 * opwest_accelerator_context_begin() and opwest_accelerator_context_end(), which an ISR may call.
 */
#ifndef OPWEST_ACCELERATOR_CONTEXT_H_
#define OPWEST_ACCELERATOR_CONTEXT_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/accelerator.h>
#include <opwest/port_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of a device; its members are used by these functions only. */
struct opwest_accelerator_context {
	/**
	 * Guards program and activations; also held while the device starts, stops or loads a
	 * program: a driver must not call these functions with a lock of its own that it takes
	 * there, except those for jobs.
	 */
	struct opwest_port_mutex lock;
	struct opwest_port_owner owner;
	/** The program that is loaded; NULL for none. */
	const struct opwest_program *program;
	uint32_t activations;
	/** Guards the members below. */
	struct opwest_port_spin spin;
	bool owned;
	/** Signals the end of a job, and opwest_accelerator_context_wake(). */
	struct opwest_port_sem changed;
	/** Jobs of the owner; they wrap. */
	uint32_t enqueued;
	uint32_t ended;
	/** The first failure of an ended job that no wait has returned. */
	int error;
	bool woken;
	opwest_accelerator_callback_t callback;
	void *user;
};

#ifndef __ZEPHYR__
/** A context that needs no opwest_accelerator_context_init(). */
#define OPWEST_ACCELERATOR_CONTEXT_HOST_INITIALIZER                                                \
	{                                                                                          \
		.lock = OPWEST_PORT_MUTEX_HOST_INITIALIZER,                                        \
		.owner = OPWEST_PORT_OWNER_HOST_INITIALIZER,                                       \
		.spin = OPWEST_PORT_SPIN_HOST_INITIALIZER,                                         \
		.changed = OPWEST_PORT_SEM_HOST_INITIALIZER(0, 1),                                 \
	}
#endif

/**
 * @brief Start a device at its first activation, or stop it at its last deactivation.
 *
 * @param dev The device.
 *
 * @retval 0 Done.
 * @return A negative errno: a start has no effect, a stopped device is inactive nevertheless
 */
typedef int (*opwest_accelerator_power_t)(const struct device *dev);

/**
 * @brief Initialise a context: not active, without an owner.
 *
 * @param context The context.
 */
void opwest_accelerator_context_init(struct opwest_accelerator_context *context);

/**
 * @brief Count an activation; the first one starts the device.
 *
 * @param context The device's context.
 * @param dev     The device.
 * @param start   Starts the device, may be NULL. The lock is held during the call.
 *
 * @retval 0 Active.
 * @return The return value of `start`; the device is not active
 */
int opwest_accelerator_context_activate(struct opwest_accelerator_context *context,
					const struct device *dev, opwest_accelerator_power_t start);

/**
 * @brief Undo one activation; the last one stops the device and forgets its program.
 *
 * @param context The device's context.
 * @param dev     The device.
 * @param stop    Stops the device, may be NULL. The lock is held during the call.
 *
 * @retval 0      Done.
 * @retval -EPERM The device is not active.
 * @return The return value of `stop`; the activation is undone
 */
int opwest_accelerator_context_deactivate(struct opwest_accelerator_context *context,
					  const struct device *dev,
					  opwest_accelerator_power_t stop);

/**
 * @brief Become the owner. The counts of jobs begin at 0.
 *
 * @param context    The device's context.
 * @param timeout_ms The longest wait for another owner, milliseconds; 0: none; OPWEST_FOREVER.
 *
 * @retval 0        The calling thread owns the device.
 * @retval -EBUSY   Another owner did not release it.
 * @retval -EDEADLK The calling thread owns it already.
 * @retval -EPERM   The device is not active.
 */
int opwest_accelerator_context_open(struct opwest_accelerator_context *context, int32_t timeout_ms);

/**
 * @brief Check whether the calling thread owns the device, before its close() aborts jobs.
 *
 * @param context The device's context.
 *
 * @retval true  It does.
 * @retval false Another thread owns it, or none: close() returns -EPERM and has no effect.
 */
bool opwest_accelerator_context_is_mine(struct opwest_accelerator_context *context);

/**
 * @brief Release the device, on the thread that owns it.
 *
 * @param context The context of a device that does not access the owner's memory any more: all jobs
 *                have ended.
 *
 * @retval 0      Others can own it.
 * @retval -EPERM The calling thread does not own it.
 */
int opwest_accelerator_context_close(struct opwest_accelerator_context *context);

/**
 * @brief Load a program, unless it is loaded already.
 *
 * @param context   The device's context.
 * @param dev       The device, owned by the caller.
 * @param program   The program, may be NULL. It must exist until another one is loaded, or the last
 *                  deactivation.
 * @param switching The device's cost of another program.
 * @param load      Loads the program, may be NULL.
 *
 * @retval 0      Loaded.
 * @retval -EPERM The device has no owner.
 * @retval -EBUSY Jobs are unfinished; or, for OPWEST_SWITCH_EXCLUSIVE, another model has activated
 *                the device.
 * @return The return value of `load`; no program is loaded
 */
int opwest_accelerator_context_load(struct opwest_accelerator_context *context,
				    const struct device *dev, const struct opwest_program *program,
				    enum opwest_switching switching,
				    opwest_accelerator_load_t load);

/**
 * @brief Forget the program, for a device that lost it when it was powered down.
 *
 * @param context The device's context.
 */
void opwest_accelerator_context_forget(struct opwest_accelerator_context *context);

/**
 * @brief Count a job of the owner, immediately before it is put into the queue.
 *
 * @param context The device's context.
 *
 * @retval 0      Counted: opwest_accelerator_context_end() must follow.
 * @retval -EPERM The device has no owner.
 */
int opwest_accelerator_context_begin(struct opwest_accelerator_context *context);

/**
 * @brief Report the end of the oldest unfinished job: from a thread or an ISR.
 *
 * Without an unfinished job it has no effect: a device may signal the end of a job twice. A driver
 * that can have other jobs in its queue at that time must recognise the second signal itself.
 *
 * @param context The device's context.
 * @param dev     The device, for the callback.
 * @param error   0, or its negative errno. The device does not access its memory any more.
 */
void opwest_accelerator_context_end(struct opwest_accelerator_context *context,
				    const struct device *dev, int error);

/**
 * @brief Return the number of jobs of the owner; see opwest_accelerator_enqueued().
 *
 * @param context The device's context.
 *
 * @return The number
 */
uint32_t opwest_accelerator_context_enqueued(struct opwest_accelerator_context *context);

/**
 * @brief Return the number of unfinished jobs.
 *
 * @param context The device's context.
 *
 * @return The number
 */
uint32_t opwest_accelerator_context_unfinished(struct opwest_accelerator_context *context);

/**
 * @brief Wait until at most `leave` jobs are unfinished; see opwest_accelerator_sync().
 *
 * @param context    The device's context.
 * @param leave      The largest number of unfinished jobs.
 * @param timeout_ms The longest wait, milliseconds; 0: none; OPWEST_FOREVER.
 *
 * @retval 0          Done.
 * @retval -EPERM     The device has no owner.
 * @retval -EINTR     Woken.
 * @retval -EAGAIN    More jobs are unfinished, and `timeout_ms` is 0.
 * @retval -ETIMEDOUT More jobs are unfinished after the time-out.
 * @return The first failure of an ended job
 */
int opwest_accelerator_context_sync(struct opwest_accelerator_context *context, uint32_t leave,
				    int32_t timeout_ms);

/**
 * @brief Wait until all jobs have ended, for operators that are not asynchronous.
 *
 * opwest_accelerator_wake() does not end it: the caller could not tell whether its own run is
 * cancelled, and would leave its job unfinished. A cancelled run ends after the operator.
 *
 * @param context    The device's context.
 * @param timeout_ms The longest wait, milliseconds; 0: none; OPWEST_FOREVER.
 *
 * @retval 0          All have ended.
 * @retval -EPERM     The device has no owner.
 * @retval -EAGAIN    Jobs are unfinished, and `timeout_ms` is 0.
 * @retval -ETIMEDOUT Jobs are unfinished after the time-out.
 * @return The first failure of an ended job
 */
int opwest_accelerator_context_drain(struct opwest_accelerator_context *context,
				     int32_t timeout_ms);

/**
 * @brief End a wait; see opwest_accelerator_wake().
 *
 * @param context The device's context.
 */
void opwest_accelerator_context_wake(struct opwest_accelerator_context *context);

/**
 * @brief Set the callback; see opwest_accelerator_notify().
 *
 * @param context  The device's context.
 * @param callback The callback, or NULL.
 * @param user     Its second argument.
 *
 * @retval 0      Done.
 * @retval -EPERM The device has no owner.
 */
int opwest_accelerator_context_notify(struct opwest_accelerator_context *context,
				      opwest_accelerator_callback_t callback, void *user);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ACCELERATOR_CONTEXT_H_ */
