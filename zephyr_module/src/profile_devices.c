/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include <opwest/profile_devices.h>

static const struct opwest_measured_device *find(const struct device *dev)
{
	STRUCT_SECTION_FOREACH(opwest_measured_device, measured) {
		if (measured->dev == dev) {
			return measured;
		}
	}
	return NULL;
}

int opwest_profile_device(const struct device *dev, uint32_t index,
			  struct opwest_device_measure *measure)
{
	const struct opwest_measured_device *const measured = find(dev);

	return measured != NULL ? measured->read(dev, index, measure) : -ENOTSUP;
}

int opwest_profile_device_reset(const struct device *dev)
{
	const struct opwest_measured_device *const measured = find(dev);

	if (measured == NULL) {
		return -ENOTSUP;
	}
	measured->reset(dev);
	return 0;
}
