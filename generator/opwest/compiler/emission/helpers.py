# SPDX-License-Identifier: Apache-2.0
"""Small C functions that operators share. The file of operators contains those that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opwest.compiler.emission.scaling_helpers import FUNCTIONS

_ROUNDING = """\
#ifdef CMSIS_NN_USE_SINGLE_ROUNDING
#error "the operators need CMSIS-NN without CMSIS_NN_USE_SINGLE_ROUNDING: it changes results"
#endif
"""
_FUNCTIONS = """\
/* gemmlowp: a doubling high multiplication, then a shift to the right, each rounded to nearest. */
static inline int32_t scale_twice(int32_t sum, int32_t multiplier, int shift)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier + (1 << 30)) >> 31);
	int32_t mask = (int32_t)((UINT32_C(1) << shift) - 1);

	return (high >> shift) + ((high & mask) > ((mask >> 1) + (high < 0)));
}
/* scale_twice() for shifts above 0 and sums whose scaled value plus the rounding fits in 32 bits. */
static inline int32_t scale_twice_fast(int32_t sum, int32_t multiplier, int shift)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier + (1 << 30)) >> 31);

	return (high + (1 << (shift - 1)) + (high >> 31)) >> shift;
}
/* scale_twice_fast() where results of negative sums are clamped to the same value. */
static inline int32_t scale_twice_positive(int32_t sum, int32_t multiplier, int shift)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier + (1 << 30)) >> 31);

	return (high + (1 << (shift - 1))) >> shift;
}
/* gemmlowp: a shift to the left for negative shifts, then scale_twice(). */
static inline int32_t scale_twice_left(int32_t sum, int32_t multiplier, int shift)
{
	int left = shift < 0 ? -shift : 0;
	int right = shift < 0 ? 0 : shift;
	int32_t value = (int32_t)((uint32_t)sum << left);
	int32_t high = (int32_t)(((int64_t)value * multiplier + (1 << 30)) >> 31);
	int32_t mask = (int32_t)((UINT32_C(1) << right) - 1);

	return (high >> right) + ((high & mask) > ((mask >> 1) + (high < 0)));
}
/* One rounding, halves up, for products that are shifted by more than 32 places: `places` more. */
static inline int32_t scale_once_high(int32_t sum, int32_t multiplier, int places)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier) >> 32);

	return (high + (1 << (places - 1))) >> places;
}
/* One rounding, halves up. */
static inline int32_t scale_once(int64_t sum, int32_t multiplier, int places)
{
	return (int32_t)((sum * multiplier + (INT64_C(1) << (places - 1))) >> places);
}
static inline int32_t clamp(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}
static inline int lesser(int a, int b)
{
	return a < b ? a : b;
}
static inline float clampf(float value, float low, float high)
{
	return value < low ? low : value > high ? high : value;
}
/* A product that is rounded to float, also where a processor computes with more digits. */
static inline float product_float(float a, float b)
{
	return (float)((double)a * (double)b);
}
/* A sum that is rounded to float, also where a processor computes with more digits. */
static inline float sum_float(float a, float b)
{
	return (float)((double)a + (double)b);
}
/* An integer quotient, rounded to zero: 0 for the divisor 0; INT32_MIN / -1 wraps. */
static inline int32_t divide_32(int32_t one, int32_t other)
{
	if (other == 0) {
		return 0;
	}
	return other == -1 ? (int32_t)(0 - (uint32_t)one) : one / other;
}
/* An integer quotient, rounded down: 0 for the divisor 0; INT32_MIN / -1 wraps. */
static inline int32_t floor_divide_32(int32_t one, int32_t other)
{
	if (other == 0) {
		return 0;
	}
	if (other == -1) {
		return (int32_t)(0 - (uint32_t)one);
	}
	return one / other - (one % other != 0 && (one < 0) != (other < 0));
}
/* The rest of floor_divide(), with the sign of the divisor: 0 for the divisor 0. */
static inline int32_t floor_modulo_32(int32_t one, int32_t other)
{
	int32_t rest;

	if (other == 0 || other == -1) {
		return 0;
	}
	rest = one % other;
	return rest != 0 && (rest < 0) != (other < 0) ? rest + other : rest;
}
/* The rest of floor_divide(), with the sign of the divisor: 0 for the divisor 0. */
static inline int64_t floor_modulo_64(int64_t one, int64_t other)
{
	int64_t rest;

	if (other == 0 || other == -1) {
		return 0;
	}
	rest = one % other;
	return rest != 0 && (rest < 0) != (other < 0) ? rest + other : rest;
}
static inline float floor_modulo_float(float one, float other)
{
	float rest = fmodf(one, other);

	return rest != 0.0f && (rest < 0.0f) != (other < 0.0f) ? rest + other : rest;
}
/* A power that wraps to 32 bits: 0 for negative exponents. */
static inline int32_t power_32(int32_t base, int32_t exponent)
{
	uint32_t factor = (uint32_t)base;
	uint32_t result = exponent < 0 ? 0 : 1;

	for (; exponent > 0; exponent >>= 1) {
		result *= (exponent & 1) != 0 ? factor : 1;
		factor *= factor;
	}
	return (int32_t)result;
}
/* A number rounded to nearest, halves away from zero, between limits that are integers; NaN is the lower one. */
static inline int32_t round_quotient(float value, float low, float high)
{
	float inside = value > low ? (value < high ? value : high) : low;
	int32_t whole = (int32_t)inside;
	float rest = inside - (float)whole;

	return whole + (rest >= 0.5f) - (rest <= -0.5f);
}
/* An int16 function between 513 samples: 512 intervals of 128 values. */
static inline int16_t interpolate(int16_t value, const int16_t *table)
{
	int index = 256 + (value >> 7);
	int16_t slope = (int16_t)(table[index + 1] - table[index]);

	return (int16_t)(table[index] + ((slope * (value & 127) + 64) >> 7));
}
/* 1 / (1 + exp(-x)) in 1/32768; the table has steps of x of 1/24. */
static inline int16_t logistic_16(int16_t value, const uint16_t *table, int32_t multiplier, int places)
{
	int32_t input = (value * multiplier + (places > 0 ? 1 << (places - 1) : 0)) >> places;
	uint32_t magnitude = input < 0 ? (uint32_t)-input : (uint32_t)input;
	uint32_t index = magnitude >> 9;
	uint32_t result = UINT32_C(0x7FFF) << 10;

	if (index < 255) {
		result = ((uint32_t)table[index] << 9) +
			 (magnitude & 511) * (uint32_t)(table[index + 1] - table[index]);
	}
	result = input >= 0 ? result + 512 : (UINT32_C(1) << 25) - result + 511;
	return (int16_t)(result >> 10);
}
/* 2 / (1 + exp(-2 x)) - 1 in 1/32768; the table has 1 / (1 + exp(-x)) in steps of x of 1/24. */
static inline int16_t tanh_16(int16_t value, const uint16_t *table, int32_t multiplier, int places)
{
	int32_t input = (value * multiplier + (places > 0 ? 1 << (places - 1) : 0)) >> places;
	uint32_t magnitude = input < 0 ? (uint32_t)-input : (uint32_t)input;
	uint32_t index = magnitude >> 8;
	int32_t result = 0xFFFF << 8;

	if (index < 255) {
		result = (table[index] << 8) +
			 (int32_t)(magnitude & 255) * (table[index + 1] - table[index]);
	}
	result = input >= 0 ? result - (1 << 23) + 128 : (1 << 23) - result + 127;
	return (int16_t)(result >> 8);
}
/* The high 32 bits of twice the product, rounded. */
static inline int32_t doubled_high(int32_t one, int32_t other)
{
	return (int32_t)(((int64_t)one * other + (1 << 30)) >> 31);
}
/* A quotient times a multiplier: the reciprocal is from Newton's method. 0 for the divisor 0. */
static inline int32_t divide_quantized(int32_t one, int32_t other, int32_t multiplier, int shift)
{
	uint32_t divisor = other < 0 ? (uint32_t)-other : (uint32_t)other;
	int32_t quotient = other < 0 ? -one : one;
	int right = 31 - shift;
	int32_t half, inverse, mask;

	if (other == 0 || one == 0) {
		return 0;
	}
	for (; (divisor >> 31) == 0; divisor <<= 1) {
		right--;
	}
	half = (int32_t)(divisor >> 1);
	inverse = 1515870810 + doubled_high(half, -1010580540);
	for (int turn = 0; turn < 3; turn++) {
		inverse += 4 * doubled_high(inverse, (1 << 29) - doubled_high(half, inverse));
	}
	inverse = inverse >= 1 << 30 ? INT32_MAX : 2 * inverse;
	for (; quotient >= -(1 << 30) && quotient < 1 << 30; quotient *= 2) {
		right++;
	}
	quotient = doubled_high(doubled_high(quotient, inverse), multiplier);
	if (right > 31) {
		return 0;
	}
	if (right < 0) {
		return quotient == 0 ? 0 : quotient < 0 ? INT32_MIN / 2 : INT32_MAX / 2;
	}
	mask = (int32_t)((UINT32_C(1) << right) - 1);
	return (quotient >> right) + ((quotient & mask) > ((mask >> 1) + (quotient < 0)));
}
/* A shift to the left that saturates. */
static inline int32_t shift_left(int32_t value, int places)
{
	int64_t moved = (int64_t)value * (INT64_C(1) << places);

	return moved > INT32_MAX ? INT32_MAX : moved < INT32_MIN ? INT32_MIN : (int32_t)moved;
}
/* A shift to the right, rounded to nearest, halves away from zero. */
static inline int32_t round_shift(int32_t value, int places)
{
	int32_t mask = (int32_t)((UINT32_C(1) << places) - 1);

	return (value >> places) + ((value & mask) > ((mask >> 1) + (value < 0)));
}
static inline int leading_zeros(uint32_t value)
{
	int zeros = 0;

	while (zeros < 32 && !(value & (UINT32_C(1) << (31 - zeros)))) {
		zeros++;
	}
	return zeros;
}
/* 1 / (1 + value) for values between 0 and 1, with 0 integer bits, by Newton's method. */
static inline int32_t reciprocal(int32_t value)
{
	int32_t half = (int32_t)(((int64_t)value + INT32_MAX + 1) >> 1);
	int32_t x = 1515870810 + doubled_high(half, -1010580540);

	for (int i = 0; i < 3; i++) {
		x += shift_left(doubled_high(x, (1 << 29) - doubled_high(half, x)), 2);
	}
	return shift_left(x, 1);
}
/* The natural logarithm with 5 integer bits of a number of at least 1, with 12 integer bits. */
static inline int32_t logarithm(int32_t value)
{
	const int32_t root = 1518500250, fourth_root = 1805811301;
	int zeros = leading_zeros((uint32_t)value);
	int32_t one = shift_left(doubled_high(shift_left(value, zeros - 1), root), 1);
	int32_t one_power = shift_left(12 - zeros, 25) + (1 << 23);
	int headroom = leading_zeros((uint32_t)doubled_high(value, root)) - 1;
	int32_t other = shift_left(value, headroom);
	int32_t other_power = shift_left(12 - headroom, 25) - (1 << 23);
	int32_t r = one < other ? one : other;
	int32_t power = one_power > other_power ? one_power : other_power;
	int32_t p = (int32_t)(((int64_t)r + fourth_root + 1) >> 1);
	int32_t q = 2 * (r - fourth_root);
	int32_t square = doubled_high(q, q);
	int32_t numerator =
		doubled_high(q, r) + doubled_high(doubled_high(q, square), 117049297);
	int32_t denominator =
		doubled_high(p, 1057819769 + q + doubled_high(127690142, square)) +
		doubled_high(638450708, q);
	int32_t product = doubled_high(round_shift(numerator, 6), reciprocal(denominator));

	return shift_left(doubled_high(power, 1488522236) + product, 1);
}
/* 1 / sqrt(value) as a multiplier and a shift to the right, by Newton's method; 0 is taken for 1. */
static inline int32_t inverse_root(int32_t value, int *places)
{
	if (value <= 1) {
		*places = 0;
		return INT32_MAX;
	}
	*places = 11;
	while (value >= 1 << 29) {
		value >>= 2;
		++*places;
	}

	int pairs = (leading_zeros((uint32_t)value) - 1) / 2 - 1;
	int32_t number = (value << (2 * pairs)) >> 1;
	int32_t half = round_shift(number, 1);
	int32_t x = 1 << 28;

	*places -= pairs;
	for (int i = 0; i < 5; i++) {
		int32_t cube = shift_left(doubled_high(doubled_high(x, x), x), 6);

		x = shift_left(doubled_high((1 << 28) + (1 << 27), x) - doubled_high(half, cube), 3);
	}
	x = doubled_high(x, 1518500250);
	if (*places < 0) {
		x = (int32_t)((uint32_t)x << -*places);
		*places = 0;
	}
	return x;
}
/* A value between two of 513 samples, for 16-bit numbers. */
static inline int32_t looked_up(int32_t value, const int16_t *table)
{
	const int16_t *sample = table + 256 + (value >> 7);

	return sample[0] + (((sample[1] - sample[0]) * (value & 127) + 64) >> 7);
}
/* Twice the high half of a product of 16-bit numbers, rounded. */
static inline int32_t product_16(int32_t a, int32_t b)
{
	return (a * b + (1 << 14)) >> 15;
}
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
/* 1 / (1 + exp(-value)) with 0 integer bits of a number with 3 integer bits. */
static inline int32_t gate_logistic(int32_t value)
{
	int32_t x = inverse_16(exponential_16(value > 0 ? -value : value, 3));
	int32_t above = x > 16383 ? 32767 : 2 * x;

	return value == 0 ? 1 << 14 : value > 0 ? above : 32767 - above;
}
/* tanh(value) with 0 integer bits of a number with `bits` integer bits. */
static inline int32_t gate_tanh(int32_t value, int bits)
{
	int32_t x = inverse_16(exponential_16(value > 0 ? -value : value, bits + 1)) - (1 << 13);
	int32_t above = x > 8191 ? 32767 : 4 * x;

	return value == 0 ? 0 : value > 0 ? above : -above;
}
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
static inline float sigmoidf(float value)
{
	return 1.0f / (1.0f + expf(-value));
}
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
HELPERS = {
    "cmsis_nn_rounding": _ROUNDING,
    **{
        one[1]: one[0]
        for one in re.finditer(
            r"(?:/\*[^\n]*\n)?static [^(]*?(\w+)\(.*?^}\n", FUNCTIONS + _FUNCTIONS, re.DOTALL | re.MULTILINE
        )
    },
}
"""Texts by name, in the order in which they call each other."""


def helpers_of(names: Iterable[str]) -> list[str]:
    """Return the texts of helpers, and of those that they call, each after the ones that it calls."""
    used = set(names)
    texts = []
    for name, text in reversed(HELPERS.items()):
        if name in used:
            used.update(re.findall(r"\w+(?=\([^)])", text))
            texts.append(text)
    return texts[::-1]
