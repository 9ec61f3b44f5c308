/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief A device that runs the operators of random models on a thread, after random delays.
 *
 * An operator mixes the bytes of its arguments, its step, and the program of its device.
 */
#ifndef STREAM_DEVICE_H_
#define STREAM_DEVICE_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/launch.h>
#include <opwest/port.h>

/** An argument: `in` or `out` or both. */
struct part {
	const uint8_t *in;
	uint8_t *out;
	uint32_t size;
};

/** How the drivers behave: set before a model is opened. */
struct stream_device_options {
	/** The longest delay of a job, microseconds. */
	uint32_t delay_us;
	/** The unfinished jobs that a device accepts, which its info reports; 0: no limit. */
	uint16_t depth;
	/** The same, but the info does not report it. */
	uint16_t room;
	/** enum opwest_switching */
	uint8_t switching;
	/** A launch without room blocks, instead of -EAGAIN. */
	bool blocks;
	/** The driver counts no jobs. */
	bool uncounted;
	/** The driver has no notify hook. */
	bool silent;
	/** The driver has no wake hook. */
	bool deaf;
};

extern struct stream_device_options stream_device_options;

/** What has happened in all devices. */
struct stream_device_counts {
	uint32_t jobs;
	uint32_t loads;
	uint32_t full;
};

extern struct stream_device_counts stream_device_counts;

#define STREAM_DEVICES 3

extern const struct device stream_devices[STREAM_DEVICES];

/** @brief Choose the hooks for the options, and start the devices. */
void stream_devices_start(void);

/** @brief Stop the threads of the devices. */
void stream_devices_stop(void);

/** @brief Compute a step on the processor; returns 0. */
int32_t stream_compute(uint32_t step, const struct part *parts, uint32_t count,
		       const struct opwest_launch *launch);

/**
 * @brief Enqueue a step.
 *
 * @retval 0       Enqueued.
 * @retval -EAGAIN The queue is full.
 */
int32_t stream_launch(uint32_t step, const struct part *parts, uint32_t count,
		      const struct opwest_launch *launch);

/** @brief Enqueue a step and wait for all work of the device. */
int32_t stream_call(uint32_t step, const struct part *parts, uint32_t count,
		    const struct opwest_launch *launch);

/** @brief Return the next state of stateful operators, which depends on the order of their calls. */
uint32_t stream_next(uint32_t step);

/** @brief Set the state of stateful operators, after a call that did not fail. */
void stream_keep(uint32_t state);

#endif /* STREAM_DEVICE_H_ */
