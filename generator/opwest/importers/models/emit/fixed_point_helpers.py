# SPDX-License-Identifier: Apache-2.0
"""Fixed-point functions of gemmlowp in C. A number with n integer bits is raw / 2^(31 - n).

Sources: gemmlowp's fixedpoint/fixedpoint.h, TFLite's kernels/internal/common.h.
"""

from __future__ import annotations

_SHIFT_LEFT = """\
/* A shift to the left that saturates. */
static inline int32_t shift_left(int32_t value, int places)
{
	int64_t moved = (int64_t)value * (INT64_C(1) << places);

	return moved > INT32_MAX ? INT32_MAX : moved < INT32_MIN ? INT32_MIN : (int32_t)moved;
}
"""
_ROUND_SHIFT = """\
/* A shift to the right, rounded to nearest, halves away from zero. */
static inline int32_t round_shift(int32_t value, int places)
{
	int32_t mask = (int32_t)((UINT32_C(1) << places) - 1);

	return (value >> places) + ((value & mask) > ((mask >> 1) + (value < 0)));
}
"""
_LEADING_ZEROS = """\
static inline int leading_zeros(uint32_t value)
{
	int zeros = 0;

	while (zeros < 32 && !(value & (UINT32_C(1) << (31 - zeros)))) {
		zeros++;
	}
	return zeros;
}
"""
_RECIPROCAL = """\
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
"""
_LOGARITHM = """\
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
"""
_INVERSE_ROOT = """\
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
"""
_LOOKED_UP = """\
/* A value between two of 513 samples, for 16-bit numbers. */
static inline int32_t looked_up(int32_t value, const int16_t *table)
{
	const int16_t *sample = table + 256 + (value >> 7);

	return sample[0] + (((sample[1] - sample[0]) * (value & 127) + 64) >> 7);
}
"""
FIXED_POINT = {
    "shift_left": _SHIFT_LEFT,
    "round_shift": _ROUND_SHIFT,
    "leading_zeros": _LEADING_ZEROS,
    "reciprocal": _RECIPROCAL,
    "logarithm": _LOGARITHM,
    "inverse_root": _INVERSE_ROOT,
    "looked_up": _LOOKED_UP,
}
"""In the order in which they call each other, after the other helpers."""
