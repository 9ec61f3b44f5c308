/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The interface between firmware and the image of a bundle.
 *
 * The image has one struct opwest_bundle_descriptor; the firmware passes one struct opwest_host to
 * its open function. The image has no writable data: the workspace keeps the pointer to the host.
 */
#ifndef OPWEST_BUNDLE_H_
#define OPWEST_BUNDLE_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/compare.h>
#include <opwest/devices.h>
#include <opwest/model.h>
#include <opwest/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of struct opwest_host and of struct opwest_bundle_descriptor. */
#define OPWEST_HOST_VERSION            1U
/** The first member of a descriptor: "OPWD". */
#define OPWEST_BUNDLE_DESCRIPTOR_MAGIC 0x4457504fU

/** The accelerator runtime: the functions of opwest/devices.h. */
struct opwest_host_devices {
	int (*activate)(const struct opwest_device_set *set, struct opwest_slot *slots,
			struct opwest_status *status);
	int (*deactivate)(const struct opwest_device_set *set, struct opwest_slot *slots,
			  struct opwest_status *status);
	void (*begin)(const struct opwest_device_set *set, struct opwest_slot *slots);
	int (*acquire)(const struct opwest_device_set *set, struct opwest_slot *slots,
		       struct opwest_status *status, uint16_t step);
	int (*release)(const struct opwest_device_set *set, struct opwest_slot *slots,
		       struct opwest_status *status, uint32_t index);
	int (*prepare)(const struct opwest_device_set *set, struct opwest_slot *slots,
		       struct opwest_status *status, uint32_t use, uint16_t step);
	bool (*again)(const struct opwest_device_set *set, struct opwest_slot *slots,
		      struct opwest_status *status, uint32_t index, int32_t code);
	void (*launched)(struct opwest_slot *slots, uint32_t index);
	int (*sync)(const struct opwest_device_set *set, struct opwest_slot *slots,
		    struct opwest_status *status, uint32_t index, uint32_t leave);
	void (*cancel)(const struct opwest_device_set *set, struct opwest_slot *slots);
	bool (*abandon)(const struct opwest_device_set *set, struct opwest_slot *slots);
	uint32_t (*cache_line)(void);
	int (*cache_flush)(const uint8_t *data, uint32_t size);
	int (*cache_flush_and_invalidate)(uint8_t *data, uint32_t size);
	int (*cache_invalidate)(uint8_t *data, uint32_t size);
};

/** The functions of the firmware that a bundle calls. A later version only appends members. */
struct opwest_host {
	/** OPWEST_HOST_VERSION */
	uint16_t version;
	/** sizeof(struct opwest_host) */
	uint16_t size;
	/** See opwest_port_log_failure(). */
	void (*log_failure)(const char *model, uint16_t step, int32_t code);
	/** See opwest_port_log_hook(). */
	void (*log_hook)(const char *model, const char *device, const char *hook, int32_t code);
	/** NULL if the firmware has no accelerator runtime. */
	const struct opwest_host_devices *devices;
};

/** Receives the end of every point of a run: see OPWEST_BUNDLE_LAYOUT_STEPS. */
struct opwest_bundle_observer {
	/**
	 * Called on the thread of the run. The points are those of struct opwest_point; the first
	 * one, the whole run, is 0.
	 */
	void (*ended)(struct opwest_bundle_observer *observer, uint32_t point);
};

/** The workspace of the model: only the image accesses its members. */
struct opwest_bundle_workspace;

/** The device context of a bundle: a handle for each device of the model, in its order. */
typedef const struct device *const *opwest_bundle_devices_t;

/** One run with its expected outputs, in flash. */
struct opwest_bundle_vector {
	/** In the order of the model's inputs. */
	const void *const *inputs;
	/** In the order of the model's outputs. */
	const void *const *outputs;
	/** The state is reset before this vector: the first case of a file. */
	bool resets;
};

/** The expected content of a tensor in the workspace at the end of a point of vector 0. */
struct opwest_bundle_step {
	/** Its whole content, in C order. */
	const void *expected;
	/** The point after which it is complete. */
	uint16_t point;
	/** The step that wrote it. */
	uint16_t step;
	/** Index into the model's buffers (struct opwest_details). */
	uint16_t buffer;
	uint16_t reserved;
};

/** The description of an image. Its pointers are within the image. */
struct opwest_bundle_descriptor {
	/** OPWEST_BUNDLE_DESCRIPTOR_MAGIC */
	uint32_t magic;
	/** OPWEST_HOST_VERSION */
	uint16_t version;
	/** sizeof(struct opwest_bundle_descriptor) */
	uint16_t size;
	/** The model with all of its metadata. */
	const struct opwest_details *details;
	/**
	 * Initialises a workspace: its pools, in the order of the model, and its status. Call it
	 * before the first open.
	 */
	void (*prepare)(struct opwest_bundle_workspace *workspace, uint8_t *const *pools);
	/** As `<model>_open()`. The host must exist while the workspace is open. */
	int (*open)(struct opwest_bundle_workspace *workspace, opwest_bundle_devices_t devices,
		    const struct opwest_host *host);
	/** As `<model>_run()`, with a pointer for each input and output of the model. */
	int (*run)(const void *const *inputs, void *const *outputs,
		   struct opwest_bundle_workspace *workspace, opwest_bundle_devices_t devices);
	/** As `<model>_close()`. */
	int (*close)(struct opwest_bundle_workspace *workspace, opwest_bundle_devices_t devices);
	/** As `<model>_reset()`; NULL for a model without state. */
	int (*reset)(struct opwest_bundle_workspace *workspace);
	/** As `<model>_cancel()`; NULL for a model without devices. */
	int (*cancel)(struct opwest_bundle_workspace *workspace);
	/** Returns the status of the latest open, run or close. */
	const struct opwest_status *(*status)(const struct opwest_bundle_workspace *workspace);
	/**
	 * Returns the memory of a tensor in an open workspace by its index in the inputs and then
	 * the outputs; NULL if it is memory of the caller. A run copies from and to other
	 * pointers.
	 */
	uint8_t *(*placed)(struct opwest_bundle_workspace *workspace, uint16_t index);
	/** Sets the observer of an open workspace; NULL without OPWEST_BUNDLE_LAYOUT_STEPS. */
	void (*observe)(struct opwest_bundle_workspace *workspace,
			struct opwest_bundle_observer *observer);
	/** @ref vector_count golden vectors. */
	const struct opwest_bundle_vector *vectors;
	/** One for each output. */
	const struct opwest_tolerance *tolerances;
	/** @ref step_count expected results of steps; NULL without them. */
	const struct opwest_bundle_step *steps;
	uint32_t vector_count;
	uint32_t step_count;
	/** Bytes. */
	uint32_t workspace_size;
	uint32_t workspace_align;
};

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLE_H_ */
