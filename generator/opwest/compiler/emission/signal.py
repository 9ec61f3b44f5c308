# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators without FFTs and streams as C functions."""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.expressions import clamped
from opwest.compiler.emission.function import Call, Lines, call_of, emits
from opwest.compiler.ir.signal import (
    ApplyWindow,
    AutoScale,
    Energy,
    FilterBank,
    Logarithms,
    Pcan,
    SquareRoots,
    SubtractNoise,
)
from opwest.compiler.semantics.signal import logarithms

_BITS = """\
/* The number of bits up to the highest one that is set. */
static inline int bits_of(uint32_t value)
{
	int bits = 0;

	for (int step = 16; step > 0; step >>= 1) {
		if (value >> step != 0) {
			value >>= step;
			bits += step;
		}
	}
	return bits + (value != 0);
}
"""
_ROOT_32 = """\
/* A square root, rounded to nearest. */
static uint32_t root_32(uint32_t value)
{
	uint32_t bit = UINT32_C(1) << 30;
	uint32_t root = 0;

	while (bit > value) {
		bit >>= 2;
	}
	for (; bit != 0; bit >>= 2) {
		if (value >= root + bit) {
			value -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root + (value > root && root != UINT16_MAX);
}
"""
_ROOT_64 = """\
/* A square root, rounded to nearest; without rounding it is the same for numbers of 32 bits. */
static uint32_t root_64(uint64_t value)
{
	uint64_t bit = UINT64_C(1) << 62;
	uint64_t root = 0;

	if (value <= UINT32_MAX) {
		return root_32((uint32_t)value);
	}
	while (bit > value) {
		bit >>= 2;
	}
	for (; bit != 0; bit >>= 2) {
		if (value >= root + bit) {
			value -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (uint32_t)(root + (value > root && root != UINT32_MAX));
}
"""
_LOGARITHM = """\
/* The natural logarithm of a number above 1 in 1/65536, from a table of 128 segments. */
static uint32_t logarithm_16(uint32_t value, const uint16_t *table)
{
	const int places = bits_of(value) - 1;
	const uint32_t rest = value - (UINT32_C(1) << places);
	const uint32_t fraction = places < 16 ? rest << (16 - places) : rest >> (places - 16);
	const uint16_t *segment = table + (fraction >> 9);
	const int32_t slope = ((segment[1] - segment[0]) * (int32_t)(fraction & 511)) >> 16;
	const uint32_t log2 = ((uint32_t)places << 16) + fraction + segment[0] + (uint32_t)slope;

	return (uint32_t)((UINT64_C(45426) * log2 + 32768) >> 16);
}
"""
_GAIN = """\
/* The gain for an estimate of the noise: a polynomial for each place of the highest bit. */
static int16_t gain_of(uint32_t noise, const int16_t *gains)
{
	if (noise <= 2) {
		return gains[noise];
	}

	const int bits = bits_of(noise);
	const int32_t fraction = (int32_t)((bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 1023);
	int32_t result;

	gains += 4 * bits - 6;
	result = ((gains[2] * fraction) >> 5) + gains[1] * 32;
	return (int16_t)(((result * fraction + (1 << 14)) >> 15) + gains[0]);
}
"""


@emits(ApplyWindow)
def window(operation: ApplyWindow) -> Call:
    """Return the call."""
    data, factors = operation.inputs
    lines, length = Lines(), factors.size
    head = f"for (int row = 0; row < {data.size // length}; row++, data += {length}, result += {length})"
    with lines.block(head), lines.loop("i", length):
        lines.add(f"int32_t x = (data[i] * window[i]) >> {operation.shift};", "")
        lines.add(f"result[i] = {clamped('x', -32768, 32767, 'int16')};")
    return call_of(operation, "window", lines, ("data", "window"), in_place=("data",), helpers=("clamp",))


@emits(AutoScale)
def auto_scale(operation: AutoScale) -> Call:
    """Return the call. After an element of -32768, the next one is taken for the greatest, as in tflite-micro."""
    length, lines = operation.inputs[0].size, Lines()
    lines.add("int16_t greatest = 0;", "int places = 0;", "")
    with lines.loop("i", length):
        with lines.block("if (data[i] > greatest)"):
            lines.add("greatest = data[i];")
        with lines.block("else"):
            lines.add("greatest = -data[i] > greatest ? (int16_t)-data[i] : greatest;")
    with lines.block("if (greatest > 0)"):
        lines.add("places = 15 - bits_of((uint32_t)greatest);")
    with lines.loop("i", length):
        lines.add("scaled[i] = (int16_t)(data[i] * (1 << places));")
    lines.add("bits[0] = places;")
    return call_of(operation, "auto_scale", lines, results=("scaled", "bits"), definitions=(_BITS,))


@emits(Energy)
def energy(operation: Energy) -> Call:
    """Return the call."""
    lines, count = Lines(), operation.results[0].size
    start, end = operation.start, operation.end
    if start == end:
        lines.add("(void)data;")
    for low, high in ((0, start), (end, count)):
        if low < high:
            lines.add(f"memset(result{f' + {low}' if low else ''}, 0, {high - low} * sizeof(*result));")
    if start < end:
        with lines.block(f"for (int i = {start}; i < {end}; i++)"):
            lines.add("const int32_t r = data[2 * i];", "const int32_t j = data[2 * i + 1];", "")
            lines.add("result[i] = (uint32_t)(r * r) + (uint32_t)(j * j);")
    headers = ("string.h",) if start > 0 or end < count else ()
    return call_of(operation, "energy", lines, headers=headers)


@emits(FilterBank)
def filter_bank(operation: FilterBank) -> Call:
    """Return the call. Weights that are not negative have products of 32 by 32 bits."""
    lines, channels = Lines(), operation.results[0].size
    is_positive = all(int(np.min(value.content, initial=0)) >= 0 for value in operation.inputs[1:3])
    kind = "uint16_t" if is_positive else "uint64_t"
    lines.add("uint64_t rest = 0;", "")
    with lines.loop("i", channels + 1):
        lines.add("const uint32_t *x = data + starts[i];", "const int16_t *w = weights + firsts[i];")
        lines.add("const int16_t *u = unweights + firsts[i];", "uint64_t sum = rest;", "")
        lines.add("rest = 0;")
        with lines.block("for (int j = 0; j < widths[i]; j++)"):
            lines.add(f"sum += (uint64_t)x[j] * ({kind})w[j];", f"rest += (uint64_t)x[j] * ({kind})u[j];")
        with lines.block("if (i > 0)"):
            lines.add("result[i - 1] = sum;")
    names = ("data", "weights", "unweights", "starts", "firsts", "widths")
    return call_of(operation, "filter_bank", lines, names)


@emits(SquareRoots)
def square_roots(operation: SquareRoots) -> Call:
    """Return the call."""
    lines = Lines()
    lines.add("const int places = bits[0] & 31;", "")
    with lines.loop("i", operation.results[0].size):
        lines.add("result[i] = root_64(data[i]) >> places;")
    return call_of(operation, "square_roots", lines, ("data", "bits"), definitions=(_ROOT_32, _ROOT_64))


@emits(Logarithms)
def render_logarithms(operation: Logarithms) -> Call:
    """Return the call."""
    lines = Lines()
    with lines.loop("i", operation.results[0].size):
        lines.add(f"const uint32_t x = data[i]{f' << {operation.bits}' if operation.bits else ''};")
        lines.add("uint32_t y = 0;", "")
        with lines.block("if (x > 1)"):
            lines.add(f"y = (UINT32_C({operation.scale}) * logarithm_16(x, table) + 32768) >> 16;")
        lines.add("result[i] = (int16_t)(y < INT16_MAX ? y : INT16_MAX);")
    table = ("table", np.asarray(logarithms(), np.uint16))
    return call_of(operation, "logarithms", lines, constants=[table], definitions=(_BITS, _LOGARITHM))


@emits(SubtractNoise)
def subtract_noise(operation: SubtractNoise) -> Call:
    """Return the call."""
    numbers, channels, lines = operation.numbers, operation.inputs[0].size, Lines()

    def chosen(pair: tuple[int, int]) -> str:
        even, odd = (f"UINT32_C({value})" for value in pair)
        return even if even == odd or channels == 1 else f"((i & 1) != 0 ? {odd} : {even})"

    places = numbers.smoothing_bits
    with lines.loop("i", channels):
        lines.add(f"const uint32_t moved = data[i]{f' << {places}' if places else ''};")
        products = (("moved", numbers.smoothing), ("noise[i]", numbers.one_minus_smoothing))
        total = " + ".join(f"(uint64_t){value} * {chosen(pair)}" for value, pair in products)
        lines.add(f"const uint64_t sum = {total};")
        remaining = f"(uint64_t)data[i] * UINT32_C({numbers.remaining})"
        lines.add(f"uint32_t least = (uint32_t)(({remaining}) >> {numbers.bits});")
        lines.add(f"uint32_t level = (uint32_t)(sum >> {numbers.bits});", "uint32_t rest;", "")
        if not numbers.is_clamped:
            lines.add("noise[i] = level;")
        lines.add("level = level < moved ? level : moved;")
        if numbers.is_clamped:
            lines.add("noise[i] = level;")
        lines.add("estimate[i] = noise[i];")
        difference = "moved - level" if not places else f"(moved - level) >> {places}"
        lines.add(f"rest = {difference};", "result[i] = rest > least ? rest : least;")
    names = ("result", "estimate")
    return call_of(operation, "subtract_noise", lines, ("data", "noise"), states=("noise",), results=names)


@emits(Pcan)
def pcan(operation: Pcan) -> Call:
    """Return the call."""
    lines = Lines()
    with lines.loop("i", operation.results[0].size):
        lines.add("const uint32_t gain = (uint32_t)(int32_t)gain_of(noise[i], gains);")
        lines.add(f"const uint32_t snr = (uint32_t)(((uint64_t)data[i] * gain) >> {operation.shift});", "")
        lines.add("result[i] = snr < 8192 ? (snr * snr) >> 20 : (snr >> 6) - 64;")
    names = ("data", "noise", "gains")
    return call_of(operation, "pcan", lines, names, definitions=(_BITS, _GAIN))
