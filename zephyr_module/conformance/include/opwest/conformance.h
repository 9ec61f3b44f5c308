/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The conformance suite of accelerator drivers: what a vendor provides.
 *
 * The application of the suite defines one object, `opwest_conformance`: the devices, a job, and
 * the faults that the devices or their emulator can be made to have. The suite does the rest: with
 * CONFIG_OPWEST_CONFORMANCE it is the ztest suite `opwest_conformance`, on a host runner_host.c has
 * main(). A case for which an entry is missing is skipped with the reason.
 *
 * The suite runs jobs by number. Job 0 reads a fixed input, each other job reads the result of the
 * job before it. All have results of their own.
 */
#ifndef OPWEST_CONFORMANCE_H_
#define OPWEST_CONFORMANCE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/accelerator.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The smallest number of jobs. A queue is only tested if the jobs are more than its depth. */
#define OPWEST_CONFORMANCE_JOBS 4U

/** What a job can be made to do. */
enum opwest_conformance_fault {
	/** It does not end before release() or its abort. */
	OPWEST_CONFORMANCE_HOLD,
	/** It ends with the error opwest_conformance.error. */
	OPWEST_CONFORMANCE_FAIL,
	/** The device signals its end twice. */
	OPWEST_CONFORMANCE_TWICE,
	/** It ends before its launch returns. */
	OPWEST_CONFORMANCE_EARLY,
};

/** Counts of a device since its start. */
struct opwest_conformance_counts {
	/** Programs that were loaded into the device. */
	uint32_t loads;
	/** Changes of its power. */
	uint32_t resumed;
	uint32_t suspended;
};

/** The devices under test. Entries that say so may be NULL or 0. */
struct opwest_conformance {
	/** At least one. Two are needed to test that they are independent. */
	const struct device *const *devices;
	uint32_t device_count;
	/**
	 * Programs with different results. Both may be NULL, for devices without programs; the
	 * second one may be.
	 */
	const struct opwest_program *programs[2];
	/** A program that check() rejects; may be NULL. */
	const struct opwest_program *damaged;
	/** Jobs with memory of their own, at least OPWEST_CONFORMANCE_JOBS. */
	uint32_t jobs;
	/** The error of a job that fails, negative; 0 if none can be made to fail. */
	int error;
	/** Jobs end in an interrupt, not in a thread. Ignored on a host. */
	bool ends_in_isr;
	/** Run-time power management of the devices is enabled. Ignored on a host. */
	bool has_power;
	/**
	 * Enqueue a job, as an asynchronous operator does: with the program that is loaded.
	 * Returns 0, -EAGAIN if the queue is full, or another negative errno.
	 */
	int (*launch)(const struct opwest_launch *launch, uint32_t job);
	/** The memory that a job writes, and its size in bytes. The suite overwrites it. */
	uint8_t *(*result)(const struct device *dev, uint32_t job, size_t *size);
	/**
	 * Whether a result is that of the program, for the present content of the result of the job
	 * before. False for a result that has the same byte everywhere, as the one before it.
	 */
	bool (*is_right)(const struct device *dev, uint32_t job,
			 const struct opwest_program *program);
	/**
	 * Give a fault to a job: `after` jobs start before it. Called while no job waits in the
	 * queue; two jobs can have different faults. Returns 0, or -ENOTSUP if the device cannot do
	 * this. May be NULL.
	 */
	int (*inject)(const struct device *dev, enum opwest_conformance_fault fault,
		      uint32_t after);
	/** Let the held job end; without effect if none is held. NULL if none can be held. */
	void (*release)(const struct device *dev);
	/** Count; may be NULL. */
	void (*count)(const struct device *dev, struct opwest_conformance_counts *counts);
	/** Remove faults that have not happened, after each case; may be NULL. */
	void (*reset)(const struct device *dev);
};

/** Defined by the application of the suite. */
extern const struct opwest_conformance opwest_conformance;

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_CONFORMANCE_H_ */
