/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include <opwest/bundles.h>
#include <opwest/devices.h>
#include <opwest/port.h>

#ifdef CONFIG_OPWEST_BUNDLE_DEVICES
static const struct opwest_host_devices devices = {
	.activate = opwest_devices_activate,
	.deactivate = opwest_devices_deactivate,
	.begin = opwest_devices_begin,
	.acquire = opwest_devices_acquire,
	.release = opwest_devices_release,
	.prepare = opwest_devices_prepare,
	.again = opwest_devices_again,
	.launched = opwest_devices_launched,
	.sync = opwest_devices_sync,
	.cancel = opwest_devices_cancel,
	.abandon = opwest_devices_abandon,
	.cache_line = opwest_port_cache_line,
	.cache_flush = opwest_port_cache_flush,
	.cache_flush_and_invalidate = opwest_port_cache_flush_and_invalidate,
	.cache_invalidate = opwest_port_cache_invalidate,
};
#define DEVICES (&devices)
#else
#define DEVICES NULL
#endif

const struct opwest_host opwest_bundle_host = {
	.version = OPWEST_HOST_VERSION,
	.size = sizeof(struct opwest_host),
	.log_failure = opwest_port_log_failure,
	.log_hook = opwest_port_log_hook,
	.devices = DEVICES,
};
