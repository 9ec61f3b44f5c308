/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * @brief The features of keyword spotting, in integers: the same bits on every processor.
 *
 * features.py contains the same arithmetic in numpy, and the tables. Right shifts of negative
 * numbers are arithmetic, as in every compiler for Zephyr.
 */

#include <stdint.h>
#include <string.h>

enum {
	BLOCK = 1600,
	BLOCKS = 10,
	FRAME = 480,
	STEP = 320,
	FFT = 512,
	NEW_FRAMES = BLOCK / STEP,
	FRAMES = 49,
	BANDS = 40,
	BINS = 127,
	COEFFICIENTS = 10,
};

static inline int32_t magnitude_of(int32_t value)
{
	return value < 0 ? -value : value;
}

/** Return the position of the highest bit of a number that is not 0. */
static inline uint32_t highest_bit(uint64_t value)
{
	uint32_t bit = 0;

	for (uint32_t step = 32; step > 0; step /= 2) {
		if (value >> step != 0) {
			value >>= step;
			bit += step;
		}
	}
	return bit;
}

/** Write a frame times the window, scaled to 30 bits, with reversed indices. Return the scaling. */
static uint32_t load(const int16_t *samples, const int16_t *window, int32_t (*spectrum)[2])
{
	int32_t largest = 1;
	uint32_t shift;

	for (int32_t i = 0; i < FRAME; i++) {
		int32_t value = magnitude_of(samples[i] * window[i]);

		largest = value > largest ? value : largest;
	}
	shift = 29 - highest_bit((uint64_t)largest);
	memset(spectrum, 0, FFT * sizeof(*spectrum));
	for (uint32_t i = 0; i < FRAME; i++) {
		uint32_t place = 0;

		for (uint32_t bit = 1; bit < FFT; bit *= 2) {
			place = 2 * place + ((i & bit) != 0);
		}
		spectrum[place][0] = samples[i] * window[i] * (int32_t)(1U << shift);
	}
	return shift;
}

/** Transform in place. Each of the nine stages halves its results, so they do not overflow. */
static void transform(int32_t (*data)[2], const int32_t (*twiddles)[2])
{
	for (int32_t half = 1; half < FFT; half *= 2) {
		for (int32_t i = 0; i < half; i++) {
			const int32_t *w = twiddles[i * (FFT / 2 / half)];

			for (int32_t j = i; j < FFT; j += 2 * half) {
				int32_t *a = data[j];
				int32_t *b = data[j + half];
				int64_t re = (int64_t)b[0] * w[0] - (int64_t)b[1] * w[1];
				int64_t im = (int64_t)b[0] * w[1] + (int64_t)b[1] * w[0];
				int32_t tr = (int32_t)((re + (1 << 29)) >> 30);
				int32_t ti = (int32_t)((im + (1 << 29)) >> 30);

				b[0] = (a[0] - tr + 1) >> 1;
				b[1] = (a[1] - ti + 1) >> 1;
				a[0] = (a[0] + tr + 1) >> 1;
				a[1] = (a[1] + ti + 1) >> 1;
			}
		}
	}
}

/** Return the square root, rounded down. */
static uint32_t square_root(uint64_t value)
{
	uint64_t root = 0;

	for (uint64_t bit = 1ULL << 60; bit != 0; bit /= 4) {
		if (value >= root + bit) {
			value -= root + bit;
			root = root / 2 + bit;
		} else {
			root /= 2;
		}
	}
	return (uint32_t)root;
}

/** Sum the magnitudes of a spectrum in bands; a bin belongs to the bands on both sides of it. */
static void sum_bands(int32_t (*spectrum)[2], uint32_t shift, const uint8_t *edges,
		      const uint16_t *rising, uint32_t *bands)
{
	uint64_t sums[BANDS + 2] = {0};

	for (int32_t i = 0; i < BINS; i++) {
		int64_t re = spectrum[i + 1][0];
		int64_t im = spectrum[i + 1][1];
		uint64_t magnitude = square_root((uint64_t)(re * re + im * im));

		sums[edges[i]] += (32768U - rising[i]) * magnitude;
		sums[edges[i] + 1] += rising[i] * magnitude;
	}
	for (int32_t i = 0; i < BANDS; i++) {
		bands[i] = (uint32_t)((sums[i + 1] + (16384ULL << shift)) >> (15 + shift));
	}
}

/**
 * @brief Append the bands of five frames to those of the last second.
 *
 * @param audio    100 ms of sound, [1600].
 * @param window   Hann window, Q15, [480].
 * @param twiddles exp(-2 pi i k / 512), Q30, [256, 2].
 * @param edges    Edge below each of the bins 1 to 127, [127].
 * @param rising   Place of each bin between its edges, Q15, [127].
 * @param overlap  The last samples of the previous blocks, [320].
 * @param bands    Magnitudes, 1/64 of a sample's unit, [49, 40], oldest frame first.
 * @param frame    Scratch for one frame, [480].
 * @param spectrum Scratch for its spectrum, [512, 2].
 *
 * @return 0
 */
int32_t append_bands(const int16_t *audio, const int16_t *window, const int32_t (*twiddles)[2],
		     const uint8_t *edges, const uint16_t *rising, int16_t *overlap,
		     uint32_t (*bands)[BANDS], int16_t *frame, int32_t (*spectrum)[2])
{
	memmove(bands[0], bands[NEW_FRAMES], sizeof(bands[0]) * (FRAMES - NEW_FRAMES));
	for (int32_t i = 0; i < NEW_FRAMES; i++) {
		/* The first frame begins with the previous samples, the others follow it. */
		const int16_t *samples = i == 0 ? frame : audio + (i - 1) * STEP;
		uint32_t shift;

		if (i == 0) {
			memcpy(frame, overlap, STEP * sizeof(*frame));
			memcpy(frame + STEP, audio, (FRAME - STEP) * sizeof(*frame));
		}
		shift = load(samples, window, spectrum);
		transform(spectrum, twiddles);
		sum_bands(spectrum, shift, edges, rising, bands[FRAMES - NEW_FRAMES + i]);
	}
	memcpy(overlap, audio + BLOCK - STEP, STEP * sizeof(*overlap));
	return 0;
}

/**
 * @brief Find the largest sample of the last second, at least 1.
 *
 * @param audio 100 ms of sound, [1600].
 * @param peaks The largest samples of the last ten blocks, [10], oldest first.
 * @param peak  The result, [1].
 *
 * @return 0
 */
int32_t find_peak(const int16_t *audio, int16_t *peaks, int32_t *peak)
{
	memmove(peaks, peaks + 1, (BLOCKS - 1) * sizeof(*peaks));
	peaks[BLOCKS - 1] = audio[0];
	for (int32_t i = 1; i < BLOCK; i++) {
		if (audio[i] > peaks[BLOCKS - 1]) {
			peaks[BLOCKS - 1] = audio[i];
		}
	}
	*peak = 1;
	for (int32_t i = 0; i < BLOCKS; i++) {
		if (peaks[i] > *peak) {
			*peak = peaks[i];
		}
	}
	return 0;
}

/** Return the logarithm to the base 2 of a number that is not 0, Q16. */
static int32_t log2_of(uint64_t value, const int32_t *logs)
{
	uint32_t bit = highest_bit(value);
	uint32_t mantissa = (uint32_t)(bit > 22 ? value >> (bit - 22) : value << (22 - bit));
	uint32_t place = (mantissa >> 16) & 63;
	int32_t rest = (int32_t)(mantissa & 0xffff);

	return (int32_t)(bit << 16) + logs[place] +
	       (((logs[place + 1] - logs[place]) * rest) >> 16);
}

/**
 * @brief Compute the cepstral coefficients of the last second, quantised for the first layer.
 *
 * @param bands    Magnitudes, [49, 40].
 * @param peak     The largest sample, [1]: the bands are divided by it.
 * @param logs     log2(1 + i / 64), Q16, [65].
 * @param dct      DCT-II times ln(2) / scale, Q20, [10, 40].
 * @param offset   Zero point, Q36, [1].
 * @param features Coefficients, [49, 10], truncated and saturated.
 *
 * @return 0
 */
int32_t quantize_cepstra(const uint32_t (*bands)[BANDS], const int32_t *peak, const int32_t *logs,
			 const int32_t (*dct)[BANDS], const int64_t *offset, int8_t *features)
{
	uint64_t floor = ((uint64_t)*peak * 274878) >> 12; /* 1e-6 of the peak, in units of 2^-26 */
	int32_t scale = log2_of((uint64_t)*peak, logs) + (26 << 16);

	for (int32_t i = 0; i < FRAMES; i++) {
		int32_t levels[BANDS];

		for (int32_t j = 0; j < BANDS; j++) {
			levels[j] = log2_of(((uint64_t)bands[i][j] << 20) + floor, logs) - scale;
		}
		for (int32_t j = 0; j < COEFFICIENTS; j++) {
			int64_t total = *offset;

			for (int32_t k = 0; k < BANDS; k++) {
				total += (int64_t)dct[j][k] * levels[k];
			}
			total /= 1LL << 36;
			*features++ = (int8_t)(total > 127 ? 127 : total < -128 ? -128 : total);
		}
	}
	return 0;
}
