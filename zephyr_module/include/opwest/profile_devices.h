/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Counters of accelerators, by program and step: CONFIG_OPWEST_PROFILE_DEVICES.
 *
 * The cycles are those of the device's clock, not of the processor's. "opwest profile" in the shell
 * shows them after the models. A driver that has counters selects the option and lists its devices
 * with OPWEST_MEASURED_DEVICE(). For Zephyr only.
 */
#ifndef OPWEST_PROFILE_DEVICES_H_
#define OPWEST_PROFILE_DEVICES_H_

#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/sys/iterable_sections.h>

#include <opwest/launch.h>
#include <opwest/profile.h>
#include <opwest/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The number of events that a device counts beside its cycles. */
#define OPWEST_PROFILE_EVENTS 4U

/** The counters of a step on a device, or of all steps that run a program without a step. */
struct opwest_device_measure {
	const struct opwest_program *program;
	/** Cycles of the device's clock; `begun` is not used. */
	struct opwest_measure cycles;
	/** The sums over all jobs. */
	uint64_t total[OPWEST_PROFILE_EVENTS];
	/** The counts of the last job. */
	uint32_t last[OPWEST_PROFILE_EVENTS];
	/** The counted events, by the numbers of the driver. */
	uint16_t events[OPWEST_PROFILE_EVENTS];
	/** The step, or OPWEST_NO_STEP. */
	uint16_t step;
};

/** A device with counters: constant. */
struct opwest_measured_device {
	const struct device *dev;
	/** Copies one entry; -ENOENT if there are not so many. */
	int (*read)(const struct device *dev, uint32_t index,
		    struct opwest_device_measure *measure);
	/** Forgets all entries. */
	void (*reset)(const struct device *dev);
};

/** List a device. */
#define OPWEST_MEASURED_DEVICE(device, variable, read_function, reset_function)                    \
	static const STRUCT_SECTION_ITERABLE(opwest_measured_device, variable) = {                 \
		.dev = (device), .read = (read_function), .reset = (reset_function)}

/**
 * @brief Read the counters of a device.
 *
 * @param dev     The device.
 * @param index   The entry, from 0; entries are in the order of their first jobs.
 * @param measure Filled in.
 *
 * @retval 0        Done.
 * @retval -ENOENT  There are not so many entries.
 * @retval -ENOTSUP The device has no counters.
 */
int opwest_profile_device(const struct device *dev, uint32_t index,
			  struct opwest_device_measure *measure);

/**
 * @brief Reset the counters of a device.
 *
 * @param dev The device.
 *
 * @retval 0        Done.
 * @retval -ENOTSUP The device has no counters.
 */
int opwest_profile_device_reset(const struct device *dev);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PROFILE_DEVICES_H_ */
