/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Included first in the generated sources of a bundle's image.
 *
 * An image calls the firmware only through struct opwest_host. The workspace of an image is that
 * of the model followed by a trailer, so each function finds the host by its parameter `workspace`.
 * The macros below replace the functions of the runtime that need the firmware.
 *
 * Not part of firmware: `opwest bundle` compiles with OPWEST_BUNDLE_IMAGE.
 */
#ifndef OPWEST_BUNDLE_IMAGE_H_
#define OPWEST_BUNDLE_IMAGE_H_

#ifndef OPWEST_BUNDLE_IMAGE
#error "this header is for the images of bundles"
#endif

/* Options of the firmware that change the workspace or the generated code. */
#undef CONFIG_OPWEST_CHECK_STEPS
#undef CONFIG_OPWEST_PROFILE
#undef CONFIG_OPWEST_PROFILE_DEVICES
#undef CONFIG_OPWEST_RUNNER

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/devices.h>
#include <opwest/port.h>
#include <opwest/status.h>

/** Follows the workspace of the model. */
struct opwest_bundle_trailer {
	/** Set by open. */
	const struct opwest_host *host;
	/** NULL: no observer. */
	struct opwest_bundle_observer *observer;
};

/** The offset of the trailer after a workspace of @p size bytes. */
#define OPWEST_BUNDLE_TRAILER_OFFSET(size)                                                         \
	(((size) + _Alignof(struct opwest_bundle_trailer) - 1U) /                                  \
	 _Alignof(struct opwest_bundle_trailer) * _Alignof(struct opwest_bundle_trailer))

/** The trailer of a workspace of the model. */
#define OPWEST_BUNDLE_TRAILER(workspace)                                                           \
	((struct opwest_bundle_trailer *)((uintptr_t)(workspace) +                                 \
					  OPWEST_BUNDLE_TRAILER_OFFSET(sizeof(*(workspace)))))

/* One thread at a time uses a workspace: the session of the firmware refuses others. */
#define opwest_port_take(flag) ((void)(flag), true)
#define opwest_port_give(flag) ((void)(flag))

#ifdef OPWEST_BUNDLE_RUNTIME

/* The sources of the runtime in an image: the callers log, because they have a workspace. */
#define opwest_port_log_failure(model, step, code) ((void)(model), (void)(step), (void)(code))
#define opwest_port_log_hook(model, device, hook, code)                                            \
	((void)(model), (void)(device), (void)(hook), (void)(code))

#else

/** As opwest_status_failed(), with the log of the firmware. */
static inline int opwest_bundle_failed(const struct opwest_host *host, struct opwest_status *status,
				       const char *model, uint16_t step, int32_t code)
{
	const bool is_first = status->code == 0;
	const int rc = opwest_status_failed(status, model, step, code);

	if (is_first) {
		host->log_failure(model, step, code);
	}
	return rc;
}

/** As opwest_status_hook_failed(), with the log of the firmware. */
static inline int opwest_bundle_hook_failed(const struct opwest_host *host,
					    struct opwest_status *status, const char *model,
					    const char *device, enum opwest_hook hook,
					    uint8_t index, uint16_t step, int32_t code)
{
	const int rc = opwest_status_hook_failed(status, model, device, hook, index, step, code);

	host->log_hook(model, device, opwest_hook_name((uint8_t)hook), code);
	return rc;
}

/** Report the end of a point to the observer: OPWEST_BUNDLE_LAYOUT_STEPS. */
static inline void opwest_bundle_ended(const struct opwest_bundle_trailer *trailer, uint32_t point)
{
	if (trailer->observer != NULL) {
		trailer->observer->ended(trailer->observer, point);
	}
}

/** @cond INTERNAL_HIDDEN */
#define OPWEST_IMAGE_HOST    (OPWEST_BUNDLE_TRAILER(workspace)->host)
#define OPWEST_IMAGE_DEVICES (OPWEST_IMAGE_HOST->devices)

#define opwest_status_failed(status, model, step, code)                                            \
	opwest_bundle_failed(OPWEST_IMAGE_HOST, status, model, step, code)
#define opwest_status_hook_failed(status, model, device, hook, index, step, code)                  \
	opwest_bundle_hook_failed(OPWEST_IMAGE_HOST, status, model, device, hook, index, step, code)

#define opwest_devices_activate(set, slots, status)                                                \
	OPWEST_IMAGE_DEVICES->activate(set, slots, status)
#define opwest_devices_deactivate(set, slots, status)                                              \
	OPWEST_IMAGE_DEVICES->deactivate(set, slots, status)
#define opwest_devices_begin(set, slots) OPWEST_IMAGE_DEVICES->begin(set, slots)
#define opwest_devices_acquire(set, slots, status, step)                                           \
	OPWEST_IMAGE_DEVICES->acquire(set, slots, status, step)
#define opwest_devices_release(set, slots, status, index)                                          \
	OPWEST_IMAGE_DEVICES->release(set, slots, status, index)
#define opwest_devices_prepare(set, slots, status, use, step)                                      \
	OPWEST_IMAGE_DEVICES->prepare(set, slots, status, use, step)
#define opwest_devices_again(set, slots, status, index, code)                                      \
	OPWEST_IMAGE_DEVICES->again(set, slots, status, index, code)
#define opwest_devices_launched(slots, index) OPWEST_IMAGE_DEVICES->launched(slots, index)
#define opwest_devices_sync(set, slots, status, index, leave)                                      \
	OPWEST_IMAGE_DEVICES->sync(set, slots, status, index, leave)
#define opwest_devices_cancel(set, slots)   OPWEST_IMAGE_DEVICES->cancel(set, slots)
#define opwest_devices_abandon(set, slots)  OPWEST_IMAGE_DEVICES->abandon(set, slots)
#define opwest_port_cache_line()            OPWEST_IMAGE_DEVICES->cache_line()
#define opwest_port_cache_flush(data, size) OPWEST_IMAGE_DEVICES->cache_flush(data, size)
#define opwest_port_cache_flush_and_invalidate(data, size)                                         \
	OPWEST_IMAGE_DEVICES->cache_flush_and_invalidate(data, size)
#define opwest_port_cache_invalidate(data, size) OPWEST_IMAGE_DEVICES->cache_invalidate(data, size)
/** @endcond */

#endif /* OPWEST_BUNDLE_RUNTIME */

#endif /* OPWEST_BUNDLE_IMAGE_H_ */
