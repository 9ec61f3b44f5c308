/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * @brief Vibration of a machine, frame by frame: filters, statistics of a window, features.
 *
 * reference.py contains the same arithmetic in numpy, in float32 and in the same order.
 */

#include <stdint.h>

enum {
	SAMPLES = 64, /* of a frame: 20 ms at 3,200 Hz */
	BANDS = 4,
	WINDOW = 8, /* frames: 160 ms */
	STATISTICS = 6,
};

/** One biquad filter, direct form II transposed. c is b0, b1, b2, a1, a2. */
static float biquad(float x, const float *c, float *z)
{
	float y = c[0] * x + z[0];

	z[0] = (c[1] * x - c[3] * y) + z[1];
	z[1] = c[2] * x - c[4] * y;
	return y;
}

/**
 * @brief Remove gravity, then divide the signal into three bands.
 *
 * @param frame  Acceleration, mg, [64].
 * @param coeffs Coefficients of the high-pass filter and of three band-pass filters, [4, 5].
 * @param z      State of the filters, [4, 2].
 * @param bands  Signals: without gravity, and in each band, [4, 64].
 *
 * @return 0
 */
int32_t filter(const int16_t *frame, const float (*coeffs)[5], float (*z)[2],
	       float (*bands)[SAMPLES])
{
	for (int32_t i = 0; i < SAMPLES; i++) {
		bands[0][i] = biquad(frame[i], coeffs[0], z[0]);
		for (int32_t band = 1; band < BANDS; band++) {
			bands[band][i] = biquad(bands[0][i], coeffs[band], z[band]);
		}
	}
	return 0;
}

/**
 * @brief Replace the oldest frame of the window.
 *
 * @param bands      Signals, [4, 64].
 * @param statistics Of each frame of the window: sums of x^2 and x^4, largest x^2, and the sums of
 *                   x^2 in the bands, [8, 6].
 * @param place      The oldest frame, [1].
 *
 * @return 0
 */
int32_t summarize(const float (*bands)[SAMPLES], float (*statistics)[STATISTICS], int32_t *place)
{
	float *sums = statistics[*place];

	for (int32_t i = 0; i < STATISTICS; i++) {
		sums[i] = 0.0f;
	}
	for (int32_t i = 0; i < SAMPLES; i++) {
		float square = bands[0][i] * bands[0][i];

		sums[0] += square;
		sums[1] += square * square;
		sums[2] = square > sums[2] ? square : sums[2];
		for (int32_t band = 1; band < BANDS; band++) {
			sums[2 + band] += bands[band][i] * bands[band][i];
		}
	}
	*place = (*place + 1) % WINDOW;
	return 0;
}

/**
 * @brief Compute the features of the window.
 *
 * @param statistics Of the frames, [8, 6].
 * @param features   Mean square (RMS^2, mg^2), peak^2 / RMS^2 (the square of the crest factor),
 *                   kurtosis, and the mean squares of the bands, [6].
 *
 * @return 0
 */
int32_t describe(const float (*statistics)[STATISTICS], float *features)
{
	const float count = WINDOW * SAMPLES;
	float total[STATISTICS] = {0.0f};
	float mean;

	for (int32_t frame = 0; frame < WINDOW; frame++) {
		for (int32_t i = 0; i < STATISTICS; i++) {
			float value = statistics[frame][i];

			total[i] = i != 2 ? total[i] + value : value > total[i] ? value : total[i];
		}
	}
	mean = total[0] / count;
	features[0] = mean;
	features[1] = mean > 0.0f ? total[2] / mean : 0.0f;
	features[2] = mean > 0.0f ? total[1] / count / (mean * mean) : 0.0f;
	for (int32_t i = 3; i < STATISTICS; i++) {
		features[i] = total[i] / count;
	}
	return 0;
}
