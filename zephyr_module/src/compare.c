/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <opwest/compare.h>

double opwest_half_value(uint16_t bits)
{
	const uint32_t exponent = (bits >> 10) & 0x1fU;
	const uint32_t fraction = bits & 0x3ffU;
	/* The same number as a float: another bias of the exponent, more bits of the fraction. */
	uint32_t wide = exponent == 0x1fU ? 0x7f800000U | fraction << 13 : (exponent + 112U) << 23 | fraction << 13;
	float value;

	if (exponent == 0U) {
		value = (float)fraction / 16777216.0f; /* subnormal: units of 2^-24 */
	} else {
		memcpy(&value, &wide, sizeof(value));
	}
	return (bits & 0x8000U) != 0U ? -(double)value : (double)value;
}

static double real(uint8_t dtype, const uint8_t *element)
{
	double wide;
	float narrow;
	uint16_t half;

	switch (dtype) {
	case OPWEST_FLOAT16:
		memcpy(&half, element, sizeof(half));
		return opwest_half_value(half);
	case OPWEST_FLOAT32:
		memcpy(&narrow, element, sizeof(narrow));
		return (double)narrow;
	default:
		memcpy(&wide, element, sizeof(wide));
		return wide;
	}
}

/* An integer as 64 bits, those of signed types in two's complement. */
static uint64_t integer(uint8_t dtype, const uint8_t *element)
{
	int8_t s8;
	int16_t s16;
	uint16_t u16;
	int32_t s32;
	uint32_t u32;
	uint64_t u64;

	switch (dtype) {
	case OPWEST_INT8:
		memcpy(&s8, element, sizeof(s8));
		return (uint64_t)(int64_t)s8;
	case OPWEST_INT16:
		memcpy(&s16, element, sizeof(s16));
		return (uint64_t)(int64_t)s16;
	case OPWEST_UINT16:
		memcpy(&u16, element, sizeof(u16));
		return u16;
	case OPWEST_INT32:
		memcpy(&s32, element, sizeof(s32));
		return (uint64_t)(int64_t)s32;
	case OPWEST_UINT32:
		memcpy(&u32, element, sizeof(u32));
		return u32;
	case OPWEST_INT64:
	case OPWEST_UINT64:
		memcpy(&u64, element, sizeof(u64));
		return u64;
	default: /* uint8, bool */
		return *element;
	}
}

static bool is_signed(uint8_t dtype)
{
	return dtype == OPWEST_INT8 || dtype == OPWEST_INT16 || dtype == OPWEST_INT32 || dtype == OPWEST_INT64;
}

static bool is_finite(double value)
{
	return value - value == 0.0;
}

static double magnitude(double value)
{
	return value < 0.0 ? -value : value;
}

static bool reals_fit(double got, double wanted, struct opwest_tolerance tolerance)
{
	if (got != got || wanted != wanted) {
		return got != got && wanted != wanted;
	}
	if (!is_finite(got) || !is_finite(wanted)) {
		return got == wanted;
	}
	return magnitude(got - wanted) <= tolerance.absolute + tolerance.relative * magnitude(wanted);
}

static bool integers_fit(uint64_t got, uint64_t wanted, bool has_sign, struct opwest_tolerance tolerance)
{
	/* The same order without signs: the top bit the other way round. */
	const uint64_t top = has_sign ? (uint64_t)1 << 63 : 0U;
	const bool above = (got ^ top) > (wanted ^ top);
	const uint64_t distance = above ? got - wanted : wanted - got;
	const uint64_t size = has_sign && wanted >= top ? (uint64_t)0 - wanted : wanted;

	return (double)distance <= tolerance.absolute + tolerance.relative * (double)size;
}

static bool fits(uint8_t dtype, const uint8_t *got, const uint8_t *wanted, struct opwest_tolerance tolerance)
{
	if (dtype == OPWEST_FLOAT16 || dtype == OPWEST_FLOAT32 || dtype == OPWEST_FLOAT64) {
		return reals_fit(real(dtype, got), real(dtype, wanted), tolerance);
	}
	return integers_fit(integer(dtype, got), integer(dtype, wanted), is_signed(dtype), tolerance);
}

uint32_t opwest_compare(uint8_t dtype, const void *got, const void *wanted, uint32_t count,
			struct opwest_tolerance tolerance, uint32_t *first)
{
	const uint8_t *const left = got;
	const uint8_t *const right = wanted;
	const size_t size = opwest_dtype_size(dtype);
	const bool exact = !(tolerance.absolute > 0.0 || tolerance.relative > 0.0);
	uint32_t found = 0U;

	for (uint32_t i = 0U; i < count; i++) {
		if (memcmp(&left[i * size], &right[i * size], size) == 0 ||
		    (!exact && fits(dtype, &left[i * size], &right[i * size], tolerance))) {
			continue;
		}
		if (found == 0U && first != NULL) {
			*first = i;
		}
		found++;
	}
	return found;
}
