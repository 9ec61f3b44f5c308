# SPDX-License-Identifier: Apache-2.0
"""Small C functions that operators share. The file of operators contains those that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opwest.compiler.emission.element_helpers import ELEMENT_HELPERS, FIXED_POINT
from opwest.compiler.emission.lstm_integer import LSTM

HELPERS = {
    "cmsis_nn_rounding": """\
#ifdef CMSIS_NN_USE_SINGLE_ROUNDING
#error "the operators need CMSIS-NN without CMSIS_NN_USE_SINGLE_ROUNDING: it changes results"
#endif
""",
    "scale_twice": """\
/* gemmlowp: a doubling high multiplication, then a shift to the right, each rounded to nearest. */
static inline int32_t scale_twice(int32_t sum, int32_t multiplier, int shift)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier + (1 << 30)) >> 31);
	int32_t mask = (int32_t)((UINT32_C(1) << shift) - 1);

	return (high >> shift) + ((high & mask) > ((mask >> 1) + (high < 0)));
}
""",
    "scale_twice_fast": """\
/* scale_twice() for shifts above 0 and sums whose scaled value plus the rounding fits in 32 bits. */
static inline int32_t scale_twice_fast(int32_t sum, int32_t multiplier, int shift)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier + (1 << 30)) >> 31);

	return (high + (1 << (shift - 1)) + (high >> 31)) >> shift;
}
""",
    "scale_twice_positive": """\
/* scale_twice_fast() where results of negative sums are clamped to the same value. */
static inline int32_t scale_twice_positive(int32_t sum, int32_t multiplier, int shift)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier + (1 << 30)) >> 31);

	return (high + (1 << (shift - 1))) >> shift;
}
""",
    "scale_twice_left": """\
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
""",
    "scale_once_high": """\
/* One rounding, halves up, for products that are shifted by more than 32 places: `places` more. */
static inline int32_t scale_once_high(int32_t sum, int32_t multiplier, int places)
{
	int32_t high = (int32_t)(((int64_t)sum * multiplier) >> 32);

	return (high + (1 << (places - 1))) >> places;
}
""",
    "scale_once": """\
/* One rounding, halves up. */
static inline int32_t scale_once(int64_t sum, int32_t multiplier, int places)
{
	return (int32_t)((sum * multiplier + (INT64_C(1) << (places - 1))) >> places);
}
""",
    "clamp": """\
static inline int32_t clamp(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}
""",
    "lesser": """\
static inline int lesser(int a, int b)
{
	return a < b ? a : b;
}
""",
    "clampf": """\
static inline float clampf(float value, float low, float high)
{
	return value < low ? low : value > high ? high : value;
}
""",
    **ELEMENT_HELPERS,
    **FIXED_POINT,
    **LSTM,
}
"""In the order in which they call each other."""


def helpers_of(names: Iterable[str]) -> list[str]:
    """Return the texts of helpers, and of those that they call, each after the ones that it calls."""
    used = set(names)
    found = []
    for name, text in reversed(HELPERS.items()):
        if name in used:
            used.update(re.findall(r"\w+(?=\([^)])", text))
            found.append(text)
    return found[::-1]
