/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * Plays a recording in place of a sensor. With an accelerometer, fill the frame from its FIFO in
 * sense(), and leave the rest.
 */

#include <string.h>

#include "recording.h"
#include "sensor.h"

#ifdef __ZEPHYR__
#include <zephyr/kernel.h>

#define PERIOD K_MSEC(20)

struct frame {
	int16_t samples[SENSOR_SAMPLES];
};

K_MSGQ_DEFINE(frames, sizeof(struct frame), 4, 4);
K_TIMER_DEFINE(sampling, NULL, NULL);
static atomic_t lost;

static void sense(void *unused1, void *unused2, void *unused3)
{
	struct frame frame;

	ARG_UNUSED(unused1);
	ARG_UNUSED(unused2);
	ARG_UNUSED(unused3);
	k_timer_start(&sampling, PERIOD, PERIOD);
	for (int i = 0; i < FRAMES; i++) {
		k_timer_status_sync(&sampling);
		memcpy(frame.samples, recording[i], sizeof(frame.samples));
		if (k_msgq_put(&frames, &frame, K_NO_WAIT) != 0) {
			atomic_inc(&lost);
		}
	}
}

/* Above main(): the model does not delay the samples. */
K_THREAD_DEFINE(sensor, 1024, sense, NULL, NULL, NULL, K_PRIO_COOP(7), 0, 0);

int sensor_read(int16_t samples[SENSOR_SAMPLES])
{
	struct frame frame;

	k_msgq_get(&frames, &frame, K_FOREVER);
	memcpy(samples, frame.samples, sizeof(frame.samples));
	return (int)atomic_get(&lost);
}
#else /* a host without threads */

int sensor_read(int16_t samples[SENSOR_SAMPLES])
{
	static int next;

	memcpy(samples, recording[next++ % FRAMES], sizeof(recording[0]));
	return 0;
}
#endif
