/* SPDX-License-Identifier: Apache-2.0 */
/* What launched operators leave on a device that works later: a test's. */
#ifndef QUEUE_H_
#define QUEUE_H_

#include <stdint.h>

#include <opwest/port.h>

struct queue {
	int32_t count;
	/** The argument arrays of each launch, as the operator got them. */
	const void *args[4];
};

/* Leaves the work to the device, if it has a queue. */
static inline int32_t queued(const struct device *dev, const void *args)
{
	struct queue *const queue = (struct queue *)(void *)dev->data;

	if (queue == NULL) {
		return 0;
	}
	queue->args[queue->count++] = args;
	return 1;
}

#endif /* QUEUE_H_ */
