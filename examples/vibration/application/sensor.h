/* SPDX-License-Identifier: Apache-2.0 */

/** @file @brief A vibration sensor that delivers a frame every 20 ms. */

#ifndef SENSOR_H_
#define SENSOR_H_

#include <stdint.h>

/** Samples of a frame. */
#define SENSOR_SAMPLES 64

/**
 * @brief Wait for the next frame.
 *
 * @param frame Acceleration in mg.
 *
 * @return The number of frames that were lost because the queue was full.
 */
int sensor_read(int16_t frame[SENSOR_SAMPLES]);

#endif /* SENSOR_H_ */
