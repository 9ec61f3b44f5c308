/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Shared declarations of the conformance suite.
 *
 * ownership.c, jobs.c, waits.c, failures.c, programs.c and power.c have the cases; support.c what
 * they share; runner_zephyr.c and runner_host.c run them.
 */
#ifndef OPWEST_CONFORMANCE_CASES_H_
#define OPWEST_CONFORMANCE_CASES_H_

#include <opwest/conformance.h>
#include <opwest/port_sync.h>

/** The cases, in order. */
#define CONFORMANCE_CASES(X)                                                                       \
	X(description)                                                                             \
	X(activations)                                                                             \
	X(open_inactive)                                                                           \
	X(ownership)                                                                               \
	X(other_thread)                                                                            \
	X(hand_over)                                                                               \
	X(inheritance)                                                                             \
	X(instances)                                                                               \
	X(order)                                                                                   \
	X(early)                                                                                   \
	X(late)                                                                                    \
	X(twice)                                                                                   \
	X(interrupt)                                                                               \
	X(leave)                                                                                   \
	X(enqueued)                                                                                \
	X(full_queue)                                                                              \
	X(notify)                                                                                  \
	X(idle_wait)                                                                               \
	X(time_out)                                                                                \
	X(wake)                                                                                    \
	X(wake_from_thread)                                                                        \
	X(wake_from_interrupt)                                                                     \
	X(error)                                                                                   \
	X(error_in_queue)                                                                          \
	X(hang)                                                                                    \
	X(abort_queue)                                                                             \
	X(late_after_close)                                                                        \
	X(launch_without_owner)                                                                    \
	X(damaged_program)                                                                         \
	X(load_again)                                                                              \
	X(reprogramming)                                                                           \
	X(load_busy)                                                                               \
	X(exclusive)                                                                               \
	X(power_counts)                                                                            \
	X(power_open)                                                                              \
	X(power_run)                                                                               \
	X(power_loses_program)

/** A wait that always ends before. */
#ifndef LONG_MS
#define LONG_MS 10000
#endif
/** A wait that ends by its time-out. */
#define SHORT_MS 20

/** The outcome of a case on one device. */
struct conformance_check {
	/** The reason why it is skipped; NULL if it is not. */
	const char *skipped;
	/** The first expectation that was wrong; NULL if none was. */
	const char *wrong;
	const char *file;
	int line;
	long got;
	long wanted;
};

/** A case. */
typedef void (*conformance_case_t)(struct conformance_check *check, const struct device *dev);

/** @cond INTERNAL_HIDDEN */
#define CONFORMANCE_DECLARE(name)                                                                  \
	void conformance_##name(struct conformance_check *check, const struct device *dev);
CONFORMANCE_CASES(CONFORMANCE_DECLARE)
#undef CONFORMANCE_DECLARE
/** @endcond */

/** Define a case. */
#define CASE(name)                                                                                 \
	void conformance_##name(struct conformance_check *check, const struct device *dev)

/** End the function unless a value is the expected one. */
#define EXPECT(value, expected)                                                                    \
	do {                                                                                       \
		if (!conformance_expect(check, (long)(value), (long)(expected), #value, __FILE__,  \
					__LINE__)) {                                               \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/** End the function unless a condition is true. */
#define EXPECT_TRUE(condition) EXPECT((condition) ? 1 : 0, 1)

/** End the function with a reason unless a condition is true. */
#define NEED(condition, reason)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			check->skipped = (reason);                                                 \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/** End the function with a reason unless the driver has a hook. */
#define NEED_HOOK(hook)                                                                            \
	NEED(opwest_accelerator_api(dev)->hook != NULL, "the driver has no " #hook "()")

/** End the function with a reason unless a job can be given a fault. */
#define NEED_FAULT(fault, after)                                                                   \
	NEED(conformance_inject(dev, OPWEST_CONFORMANCE_##fault, after),                           \
	     "a job of the device cannot be made to have the fault " #fault)

/** End the function unless the device is active, owned, and has the first program. */
#define START()                                                                                    \
	do {                                                                                       \
		EXPECT(conformance_activate(dev), 0);                                              \
		EXPECT(opwest_accelerator_open(dev, LONG_MS), 0);                                  \
		EXPECT(opwest_accelerator_load(dev, opwest_conformance.programs[0]), 0);           \
	} while (0)

/** End the function unless the device is released and inactive. */
#define STOP()                                                                                     \
	do {                                                                                       \
		EXPECT(opwest_accelerator_close(dev), 0);                                          \
		EXPECT(conformance_deactivate(dev), 0);                                            \
	} while (0)

/** @brief Record an expectation; returns whether it is met. */
bool conformance_expect(struct conformance_check *check, long got, long wanted, const char *text,
			const char *file, int line);

/** @brief Give a fault to a job; returns whether the device can do it. */
bool conformance_inject(const struct device *dev, enum opwest_conformance_fault fault,
			uint32_t after);

/** @brief Power a device and activate it, as a model does. */
int conformance_activate(const struct device *dev);

/** @brief Undo conformance_activate(). */
int conformance_deactivate(const struct device *dev);

/** @brief Launch a job with the program that is loaded; returns what the launch returns. */
int conformance_launch(const struct device *dev, uint32_t job,
		       const struct opwest_program *program);

/** @brief Wait as a run does: again after a wake that was not for it. */
int conformance_wait(const struct device *dev, uint32_t leave, int32_t timeout_ms);

/** @brief Overwrite the results of all jobs. */
void conformance_clear(const struct device *dev);

/** @brief Whether a result is as conformance_clear() left it. */
bool conformance_is_clear(const struct device *dev, uint32_t job);

/** @brief Return the depth of the queue; 0 for no limit. */
uint32_t conformance_depth(const struct device *dev);

/** @brief Return the number of jobs, at most `most`, that the queue can have. */
uint32_t conformance_jobs(const struct device *dev, uint32_t most);

/** @brief Run a function on another thread, of a lower priority. One at a time. */
int conformance_start(opwest_port_entry_t function, const struct device *dev);

/** @brief Wait for the end of that thread. */
void conformance_join(void);

/** @brief Run a case on a device, and leave the device inactive whatever happened. */
struct conformance_check conformance_run(conformance_case_t function, const struct device *dev);

/** @brief Prepare the memory of the other thread; by the runner. */
void conformance_prepare(struct opwest_port_thread *thread);

/** @brief Whether the caller is an interrupt; by the runner. */
bool conformance_in_isr(void);

/** @brief Wake a device in an interrupt after SHORT_MS; false if there are no interrupts. */
bool conformance_wake_in_isr(const struct device *dev);

/** @brief The priority that the calling thread has now, and the lowest is the largest number. */
int conformance_priority(void);

/** @brief Whether threads have priorities, and owners inherit them; by the runner. */
bool conformance_has_priorities(void);

/** @brief Whether devices have run-time power management; by the runner. */
bool conformance_has_power(void);

#endif /* OPWEST_CONFORMANCE_CASES_H_ */
