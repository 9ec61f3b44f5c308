# SPDX-License-Identifier: Apache-2.0
"""Small C functions of elementwise operators. Those that others call come first."""

from __future__ import annotations

_DIVISIONS = """\
/* An integer quotient, rounded to zero: 0 for the divisor 0; INT{bits}_MIN / -1 wraps. */
static inline int{bits}_t divide_{bits}(int{bits}_t one, int{bits}_t other)
{{
	if (other == 0) {{
		return 0;
	}}
	return other == -1 ? (int{bits}_t)(0 - (uint{bits}_t)one) : one / other;
}}
"""
_FLOORS = """\
/* An integer quotient, rounded down: 0 for the divisor 0; INT{bits}_MIN / -1 wraps. */
static inline int{bits}_t floor_divide_{bits}(int{bits}_t one, int{bits}_t other)
{{
	if (other == 0) {{
		return 0;
	}}
	if (other == -1) {{
		return (int{bits}_t)(0 - (uint{bits}_t)one);
	}}
	return one / other - (one % other != 0 && (one < 0) != (other < 0));
}}
"""
_MODULI = """\
/* The rest of floor_divide(), with the sign of the divisor: 0 for the divisor 0. */
static inline int{bits}_t floor_modulo_{bits}(int{bits}_t one, int{bits}_t other)
{{
	int{bits}_t rest;

	if (other == 0 || other == -1) {{
		return 0;
	}}
	rest = one % other;
	return rest != 0 && (rest < 0) != (other < 0) ? rest + other : rest;
}}
"""
ELEMENT_HELPERS = {
    "divide_32": _DIVISIONS.format(bits=32),
    "floor_divide_32": _FLOORS.format(bits=32),
    "floor_modulo_32": _MODULI.format(bits=32),
    "floor_modulo_64": _MODULI.format(bits=64),
    "floor_modulo_float": """\
static inline float floor_modulo_float(float one, float other)
{
	float rest = fmodf(one, other);

	return rest != 0.0f && (rest < 0.0f) != (other < 0.0f) ? rest + other : rest;
}
""",
    "power_32": """\
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
""",
    "round_quotient": """\
/* A number rounded to nearest, halves away from zero, between limits that are integers; NaN is the lower one. */
static inline int32_t round_quotient(float value, float low, float high)
{
	float inside = value > low ? (value < high ? value : high) : low;
	int32_t whole = (int32_t)inside;
	float rest = inside - (float)whole;

	return whole + (rest >= 0.5f) - (rest <= -0.5f);
}
""",
    "interpolate": """\
/* An int16 function between 513 samples: 512 intervals of 128 values. */
static inline int16_t interpolate(int16_t value, const int16_t *table)
{
	int index = 256 + (value >> 7);
	int16_t slope = (int16_t)(table[index + 1] - table[index]);

	return (int16_t)(table[index] + ((slope * (value & 127) + 64) >> 7));
}
""",
    "logistic_16": """\
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
""",
    "tanh_16": """\
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
""",
    "doubled_high": """\
/* The high 32 bits of twice the product, rounded. */
static inline int32_t doubled_high(int32_t one, int32_t other)
{
	return (int32_t)(((int64_t)one * other + (1 << 30)) >> 31);
}
""",
    "divide_quantized": """\
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
""",
}
