/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <opwest/compare.h>

#define DTYPE(NAME, value, name, size, kind, exponent)                                             \
	[OPWEST_##NAME] = {OPWEST_KIND_##kind, exponent},

static const struct {
	uint8_t kind;
	uint8_t exponent;
} dtypes[] = {OPWEST_DTYPES(DTYPE)};

/* The bits of an element. */
static uint64_t load(uint8_t dtype, const void *element)
{
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (opwest_dtype_size(dtype)) {
	case 1:
		memcpy(&u8, element, sizeof(u8));
		return u8;
	case 2:
		memcpy(&u16, element, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, element, sizeof(u32));
		return u32;
	default:
		memcpy(&u64, element, sizeof(u64));
		return u64;
	}
}

static double from_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

double opwest_float_value(uint8_t dtype, const void *element)
{
	const uint64_t bits = load(dtype, element);
	const unsigned int width = 8U * (unsigned int)opwest_dtype_size(dtype);

	if (width == 64U) {
		return from_bits(bits);
	}

	/* The same number as a double: another bias of the exponent, more bits of the fraction. */
	const unsigned int fraction_width = width - 1U - dtypes[dtype].exponent;
	const uint64_t most = ((uint64_t)1 << dtypes[dtype].exponent) - 1U;
	const uint64_t exponent = bits >> fraction_width & most;
	const uint64_t ones = ((uint64_t)1 << fraction_width) - 1U;
	const uint64_t fraction = bits & ones;
	const bool is_special =
		exponent == most && (dtypes[dtype].kind != OPWEST_KIND_FINITE || fraction == ones);
	const uint64_t rebias = 1023U - most / 2U;
	double value;

	if (exponent == 0U) { /* subnormal: units of the least power of two */
		value = (double)fraction * from_bits((rebias + 1U - fraction_width) << 52);
	} else {
		value = from_bits((is_special ? 0x7ffU : exponent + rebias) << 52 |
				  fraction << (52U - fraction_width));
	}
	return bits >> (width - 1U) != 0U ? -value : value;
}

/* An integer as 64 bits, those of signed types in two's complement. */
static uint64_t integer(uint8_t dtype, const uint8_t *element)
{
	const uint64_t bits = load(dtype, element);
	const uint64_t sign = (uint64_t)1 << (8U * (unsigned int)opwest_dtype_size(dtype) - 1U);

	return dtypes[dtype].kind == OPWEST_KIND_SIGNED ? (bits ^ sign) - sign : bits;
}

static bool is_finite(double value)
{
	return value - value == 0.0;
}

static double magnitude(double value)
{
	return value < 0.0 ? -value : value;
}

static bool reals_fit(double got, double expected, struct opwest_tolerance tolerance)
{
	if (got != got || expected != expected) {
		return got != got && expected != expected;
	}
	if (!is_finite(got) || !is_finite(expected)) {
		return got == expected;
	}
	return magnitude(got - expected) <=
	       tolerance.absolute + tolerance.relative * magnitude(expected);
}

static bool integers_fit(uint64_t got, uint64_t expected, bool has_sign,
			 struct opwest_tolerance tolerance)
{
	/* Invert the top bit: the same order for unsigned comparison. */
	const uint64_t top = has_sign ? (uint64_t)1 << 63 : 0U;
	const bool above = (got ^ top) > (expected ^ top);
	const uint64_t distance = above ? got - expected : expected - got;
	const uint64_t size = has_sign && expected >= top ? (uint64_t)0 - expected : expected;

	return (double)distance <= tolerance.absolute + tolerance.relative * (double)size;
}

static bool fits(uint8_t dtype, const uint8_t *got, const uint8_t *expected,
		 struct opwest_tolerance tolerance)
{
	if (dtypes[dtype].exponent != 0U) {
		return reals_fit(opwest_float_value(dtype, got),
				 opwest_float_value(dtype, expected), tolerance);
	}
	return integers_fit(integer(dtype, got), integer(dtype, expected),
			    dtypes[dtype].kind == OPWEST_KIND_SIGNED, tolerance);
}

uint32_t opwest_compare(uint8_t dtype, const void *got, const void *expected, uint32_t count,
			struct opwest_tolerance tolerance, uint32_t *first)
{
	const uint8_t *const left = got;
	const uint8_t *const right = expected;
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
