/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with state in their arguments. `fail` names the operator that fails, after it has written results. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

static int32_t result(const int32_t *fail, int32_t number)
{
	return fail[0] == number ? -EIO : 0;
}

/* Two biquads, transposed direct form II: z is their state. */
int32_t filters(const float *x, const float *coeffs, const int32_t *fail, float *z, float *bands)
{
	for (int band = 0; band < 2; band++) {
		const float *const c = &coeffs[5 * band];
		float *const s = &z[2 * band];

		for (int i = 0; i < 4; i++) {
			const float y = c[0] * x[i] + s[0];

			s[0] = (c[1] * x[i] - c[3] * y) + s[1];
			s[1] = c[2] * x[i] - c[4] * y;
			bands[4 * band + i] = y;
		}
	}
	return result(fail, 1);
}

/* The mean of the absolute values of each band. */
int32_t energies(const float *bands, const int32_t *fail, float *features)
{
	for (int band = 0; band < 2; band++) {
		float sum = 0.0f;

		for (int i = 0; i < 4; i++) {
			const float value = bands[4 * band + i];

			sum += value < 0.0f ? -value : value;
		}
		features[band] = sum * 0.25f;
	}
	return result(fail, 2);
}

static float squash(float value)
{
	return value / (1.0f + (value < 0.0f ? -value : value));
}

/* A gated recurrent unit: reads the old state, writes the new one. weights: 3 x 3 gates of 2 + 3 + 1 values. */
int32_t recurrent(const float *features, const float *weights, const float *h, const int32_t *fail, float *next)
{
	float gates[9];

	for (int gate = 0; gate < 9; gate++) {
		const float *const w = &weights[6 * gate];
		float sum = w[5];

		for (int i = 0; i < 2; i++) {
			sum += w[i] * features[i];
		}
		for (int i = 0; i < 3; i++) {
			/* The candidate sees the state behind the reset gate. */
			const float seen = gate < 6 ? h[i] : gates[3 + i] * h[i];

			sum += w[2 + i] * seen;
		}
		gates[gate] = gate < 6 ? 0.5f + 0.5f * squash(sum) : squash(sum);
	}
	for (int i = 0; i < 3; i++) {
		next[i] = (1.0f - gates[i]) * h[i] + gates[i] * gates[6 + i];
	}
	return result(fail, 3);
}

/* Write features to a ring buffer of 5 frames; `place` is that of the oldest frame afterwards. */
int32_t push(const float *features, const int32_t *fail, float *ring, int32_t *place)
{
	memcpy(&ring[2 * place[0]], features, 2 * sizeof(features[0]));
	place[0] = (place[0] + 1) % 5;
	return result(fail, 4);
}

/* A convolution over the frames of the ring buffer, oldest first. */
int32_t convolve(const float *ring, const int32_t *place, const float *kernel, const int32_t *fail, float *y)
{
	for (int out = 0; out < 2; out++) {
		float sum = 0.0f;

		for (int i = 0; i < 10; i++) {
			sum += kernel[10 * out + i] * ring[(2 * place[0] + i) % 10];
		}
		y[out] = sum;
	}
	return result(fail, 5);
}
