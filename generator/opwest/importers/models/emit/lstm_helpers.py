# SPDX-License-Identifier: Apache-2.0
"""C functions of LSTMs.

Sources: gemmlowp's fixedpoint/fixedpoint.h for int16_t; TFLite's internal/reference/portable_tensor_utils.cc
(PortableApplyLayerNorm, PortableMeanStddevNormalization, PortableSymmetricQuantizeFloats,
PortableAsymmetricQuantizeFloats).
"""

from __future__ import annotations

_PRODUCT_16 = """\
/* Twice the high half of a product of 16-bit numbers, rounded. */
static inline int32_t product_16(int32_t a, int32_t b)
{
	return (a * b + (1 << 14)) >> 15;
}
"""
_EXPONENTIAL_16 = """\
/* exp(value) with 0 integer bits of a 16-bit number that is not positive. */
static inline int32_t exponential_16(int32_t value, int bits)
{
	static const int16_t factors[] = {25520, 19875, 12055, 4435, 600, 11, 0};
	int32_t quarter = 1 << (13 - bits);
	int32_t rest = (value & (quarter - 1)) - quarter;
	int32_t x = rest * (1 << bits) + (1 << 12);
	int32_t square = product_16(x, x);
	int32_t fourth = (product_16(square, square) + 2) >> 2;
	int32_t tail = (product_16(fourth + product_16(square, x), 10923) + square + 1) >> 1;
	int32_t result = 28918 + product_16(28918, x + tail);

	result = result > 32767 ? 32767 : result;
	for (int i = 0; i < bits + 2 && i < 7; i++) {
		if ((rest - value) & (1 << (13 - bits + i))) {
			result = product_16(result, factors[i]);
		}
	}
	if (bits > 5 && value < -(1 << (20 - bits))) {
		return 0;
	}
	return value == 0 ? 32767 : result;
}
"""
_INVERSE_16 = """\
/* 2 / (1 + value) with 2 integer bits of a number between 0 and 1, by Newton's method. */
static inline int32_t inverse_16(int32_t value)
{
	int32_t half = (value + 32768) >> 1;
	int32_t x = 23130 + product_16(half, -15420);

	for (int i = 0; i < 3; i++) {
		x += product_16(x, (1 << 13) - product_16(half, x)) * 4;
	}
	return x;
}
"""
_LOGISTIC = """\
/* 1 / (1 + exp(-value)) with 0 integer bits of a number with 3 integer bits. */
static inline int32_t gate_logistic(int32_t value)
{
	int32_t x = inverse_16(exponential_16(value > 0 ? -value : value, 3));
	int32_t above = x > 16383 ? 32767 : 2 * x;

	return value == 0 ? 1 << 14 : value > 0 ? above : 32767 - above;
}
"""
_TANH = """\
/* tanh(value) with 0 integer bits of a number with `bits` integer bits. */
static inline int32_t gate_tanh(int32_t value, int bits)
{
	int32_t x = inverse_16(exponential_16(value > 0 ? -value : value, bits + 1)) - (1 << 13);
	int32_t above = x > 8191 ? 32767 : 4 * x;

	return value == 0 ? 0 : value > 0 ? above : -above;
}
"""
_NORMALISE_16 = """\
/* The layer normalisation of 16-bit numbers. */
static void normalise_16(int16_t *row, const int16_t *weights, const int32_t *bias, int length,
			 int32_t multiplier, int shift, int32_t guard)
{
	int64_t sum = 0, squares = 0;

	for (int i = 0; i < length; i++) {
		sum += row[i];
		squares += row[i] * row[i];
	}

	int64_t mean = sum * 1024 / length;
	int32_t variance = (int32_t)((squares * ((1 << 20) / length) - mean * mean) / (1 << 20));
	int places;
	int32_t inverse = inverse_root(variance < 1 ? guard : variance, &places);

	for (int i = 0; i < length; i++) {
		int32_t value = scale_twice(1024 * row[i] - (int32_t)mean, inverse, places);
		int64_t product = (int32_t)((uint32_t)value * (uint32_t)weights[i] + (uint32_t)bias[i]);
		int32_t rounded = (int32_t)((product > 0 ? product + 512 : product - 512) / 1024);

		row[i] = (int16_t)clamp(scale_twice_left(rounded, multiplier, shift), -32768, 32767);
	}
}
"""
_SIGMOID = """\
static inline float sigmoidf(float value)
{
	return 1.0f / (1.0f + expf(-value));
}
"""
_NORMALISE = """\
/* Layer normalisation. */
static void normalisef(float *row, const float *weights, const float *bias, int length)
{
	float sum = 0.0f, squares = 0.0f;

	for (int i = 0; i < length; i++) {
		sum += row[i];
	}

	float mean = sum / (float)length;

	for (int i = 0; i < length; i++) {
		squares += (row[i] - mean) * (row[i] - mean);
	}

	float inverse = 1.0f / sqrtf(squares / (float)length + 1e-8f);

	for (int i = 0; i < length; i++) {
		row[i] = (row[i] - mean) * inverse * weights[i] + bias[i];
	}
}
"""
_QUANTISE = """\
/* Quantise a row symmetrically; return its scale. */
static float quantise_row(const float *row, int8_t *result, int length)
{
	float reach = 0.0f;

	for (int i = 0; i < length; i++) {
		reach = fmaxf(reach, fabsf(row[i]));
	}

	float factor = reach > 0.0f ? 127.0f / reach : 0.0f;

	for (int i = 0; i < length; i++) {
		result[i] = (int8_t)clamp((int32_t)roundf(row[i] * factor), -127, 127);
	}
	return reach > 0.0f ? reach / 127.0f : 1.0f;
}
"""
_QUANTISE_ASYMMETRIC = """\
/* Quantise a row with a zero point; return its scale. */
static float quantise_row_with_zero(const float *row, int8_t *result, int length, int32_t *zero)
{
	float low = 0.0f, high = 0.0f;

	for (int i = 0; i < length; i++) {
		low = fminf(low, row[i]);
		high = fmaxf(high, row[i]);
	}
	*zero = 0;
	if (low == high) {
		memset(result, 0, (size_t)length);
		return 1.0f;
	}

	double exact = ((double)high - (double)low) / 255.0;
	double below = (double)low / exact;
	double above = (double)high / exact;
	double from = 128.0 - below < 127.0 + above ? -128.0 - below : 127.0 - above;
	float scale = (float)exact;
	float factor = 1.0f / scale;

	*zero = from <= -128.0 ? -128 : from >= 127.0 ? 127 : (int32_t)round(from);
	for (int i = 0; i < length; i++) {
		result[i] = (int8_t)clamp((int32_t)roundf((float)*zero + row[i] * factor), -128, 127);
	}
	return scale;
}
"""
LSTM = {
    "product_16": _PRODUCT_16,
    "exponential_16": _EXPONENTIAL_16,
    "inverse_16": _INVERSE_16,
    "gate_logistic": _LOGISTIC,
    "gate_tanh": _TANH,
    "normalise_16": _NORMALISE_16,
    "sigmoidf": _SIGMOID,
    "normalisef": _NORMALISE,
    "quantise_row": _QUANTISE,
    "quantise_row_with_zero": _QUANTISE_ASYMMETRIC,
}
"""In the order in which they call each other, after the other helpers."""
