# SPDX-License-Identifier: Apache-2.0
"""Small C functions for the end of layers whose rounding and zero point are one addend."""

FUNCTIONS = """\
/* scale_twice_positive() with twice the multiplier, and an addend for the rounding and the zero point. */
static inline int32_t scale_added_positive(int32_t sum, int32_t twice, int32_t addend, int shift)
{
	int64_t product = (int64_t)sum * (uint32_t)twice;
	int32_t high = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);

	return (high + addend) >> shift;
}
/* scale_added_positive() with halves away from zero. */
static inline int32_t scale_added_signed(int32_t sum, int32_t twice, int32_t addend, int shift)
{
	int64_t product = (int64_t)sum * (uint32_t)twice;
	int32_t high = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);

	return (high + (high >> 31) + addend) >> shift;
}
/* scale_once_high() with an addend for the rounding and the zero point. */
static inline int32_t scale_added_once(int32_t sum, int32_t multiplier, int32_t addend, int shift)
{
	return ((int32_t)(((int64_t)sum * multiplier) >> 32) + addend) >> shift;
}
"""
"""In the form of those in `helpers.py`; they call none of them."""
