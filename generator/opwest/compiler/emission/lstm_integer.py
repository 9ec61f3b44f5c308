# SPDX-License-Identifier: Apache-2.0
"""LSTMs with int8 or int16 data, whose states their functions change in place."""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.expressions import clamped, plus, scale_twice
from opwest.compiler.emission.function import Call, Function, Lines, c_type, emits
from opwest.compiler.emission.lstm import Operands, Sizes, operands_of, products, sizes_of
from opwest.compiler.ir.operations import IntegerMemory
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.compiler.semantics.tables import sigmoid_table

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


_LIMITS = "-32768, 32767"


class _LstmFunction:
    """The function of a layer in the making."""

    def __init__(self, operation: IntegerMemory) -> None:
        self.operation = operation
        self.numbers: LstmNumbers = operation.numbers
        self.size: Sizes = sizes_of(operation)
        self.lines = Lines()
        self.helpers = {"clamp"}
        self.kind = c_type(operation.inputs[0].dtype)
        self.result_dtype: str = operation.results[0].dtype
        # Gates that do not exist have no multipliers.
        self.data = [one for one in self.numbers.data if one is not None]
        self.last = [one for one in self.numbers.last if one is not None]

    def operands(self) -> Operands:
        """Return parameters and arguments."""
        found = operands_of(self.operation, self.size, "int16", "int8")
        found.add("starts", self.operation.starts)
        found.add("scales", np.asarray([self._pair(one) for pair in self._pairs() for one in pair], np.int32))
        if self.numbers.is_micro:
            found.add("table", sigmoid_table())
        return found

    def _pairs(self) -> list[tuple[Multiplier, Multiplier]]:
        return list(zip(self.data, self.last, strict=True))

    def _pair(self, by: Multiplier) -> tuple[int, int]:
        """Return a multiplier and a shift for `self.scale`."""
        if self.numbers.rounding is Rounding.SIXTEEN:
            return (by.fixed + (1 << 15)) >> 16 if by.fixed < 0x7FFF0000 else 0x7FFF, 15 - by.shift
        return by.fixed, -by.shift

    @property
    def scale(self) -> str:
        """The helper that multiplies the sums of gates."""
        if self.numbers.rounding is Rounding.SIXTEEN:
            return "scale_once"
        return "scale_twice_left" if any(one.shift > 0 for one in (*self.data, *self.last)) else "scale_twice"

    def times(self, value: str, by: Multiplier) -> str:
        """Return a product that rounds twice."""
        text, helper = scale_twice(value, by)
        self.helpers.add(helper)
        return text

    def logistic(self, value: str) -> str:
        """Return the function of a gate."""
        if self.numbers.is_micro:
            self.helpers.add("logistic_16")
            return f"logistic_16((int16_t){value}, table, 3, 0)"
        self.helpers.add("gate_logistic")
        return f"gate_logistic({value})"

    def tanh(self, value: str, is_gate: bool) -> str:
        """Return the function of new cells, or of the gate of cells."""
        if self.numbers.is_micro:
            self.helpers.add("tanh_16")
            by = self.numbers.tanh
            numbers = "3, 0" if is_gate else f"{by.multiplier}, {by.places}"
            return f"tanh_16((int16_t){value}, table, {numbers})"
        self.helpers.add("gate_tanh")
        return f"gate_tanh({value}, {3 if is_gate else 15 + self.numbers.power})"

    def gate(self, value: str) -> str:
        """Return a value of a gate: an int16 number, in an array of int16 with normalisation, otherwise of int32."""
        return clamped(value, -32768, 32767, "int32" if self.operation.norms is None else "int16")

    def sums(self, to: str) -> None:
        """Append the sums of all gates of cell i; `to` is that of gate g."""
        size, lines, scale = self.size, self.lines, self.scale
        self.helpers.add(scale)
        cells, gates = size.cells, range(size.gates)
        reach = 32768 * max(size.length, size.units) * 128
        is_wide = self.operation.starts.dtype == np.int64 or (self.kind == "int16_t" and reach >= 1 << 31)
        kind = "int64_t" if is_wide else "int32_t"
        lines.add(f"const int8_t *w = weights + i * {size.length + size.units};")
        for place, row in enumerate(("x", "h")):
            starts = [f"{row}{g} = starts[{(place * size.gates + g) * cells} + i]" for g in gates]
            lines.add(f"{kind} {', '.join(starts)};")
        lines.add("")
        products(lines, size, "x", ("x[k]", size.length, 0), "int32_t")
        products(lines, size, "h", ("h[k]", size.units, size.length), "int32_t")
        for row in ("x", "h"):
            lines.add(f"const {kind} {row}_sums[] = {{{', '.join(f'{row}{g}' for g in gates)}}};")
        lines.add("")
        with lines.loop("g", size.gates):
            lines.add("const int32_t *s = scales + g * 4;")
            lines.add(f"const int32_t first = clamp({scale}(x_sums[g], s[0], s[1]), {_LIMITS});")
            second = f"{scale}(h_sums[g], s[2], s[3])"
            if self.numbers.is_micro:
                second = f"clamp({second}, {_LIMITS})"
            lines.add("", f"{to} = {self.gate(f'first + {second}')};")
        lines.add("")

    def peep(self, at: str, gate: int) -> None:
        """Append the product of a cell with the weight of a gate."""
        if self.operation.peepholes is None:
            return
        factors = [peephole for peephole in self.numbers.peepholes if peephole is not None]
        place = gate if gate < self.size.cell else gate - 1
        to = at.format(g=gate)
        product = self.times(f"peepholes[{place} * {self.size.cells} + i] * c[i]", factors[place])
        self.lines.add(f"{to} = {self.gate(f'{to} + {product}')};")

    def normalise(self, gate: int) -> None:
        """Append the layer normalisation of a gate."""
        norm = [one for one in self.numbers.norms if one is not None][gate]
        self.helpers.add("normalise_16")
        cells, first = self.size.cells, gate * self.size.cells
        self.lines.add(
            f"normalise_16(gates + {first}, norms + {first}, bias + {first}, {cells}, {norm.by.fixed}, "
            f"{-norm.by.shift}, {norm.guard});"
        )

    def cell(self, at: str) -> None:
        """Append the new value of a cell."""
        size, numbers, lines = self.size, self.numbers, self.lines
        lines.add(f"const int32_t forget = {self.logistic(at.format(g=size.forget))};")
        enter = "(32767 - forget)" if size.gates == 3 else self.logistic(at.format(g=0))
        new = self.tanh(at.format(g=size.cell), True)
        if numbers.products is not None:
            kept, added = (
                f"clamp({self.times(value, by)}, {_LIMITS})"
                for value, by in zip(("forget * c[i]", f"{enter} * {new}"), numbers.products, strict=True)
            )
        else:
            self.helpers.add("round_shift")
            kept = "round_shift(forget * c[i], 15)"
            added = f"round_shift({enter} * {new}, {30 + numbers.power})"
        lines.add(f"const int32_t kept = {kept};", f"const int32_t added = {added};", "")
        low, high = (-32768, 32767) if numbers.clip is None else (-numbers.clip, numbers.clip)
        lines.add(f"c[i] = {clamped('kept + added', low, high, 'int16')};")

    def result(self, at: str) -> None:
        """Append the product of a cell and the output gate."""
        numbers = self.numbers
        gate = self.logistic(at.format(g=self.size.gates - 1))
        product = self.times(f"{gate} * {self.tanh('c[i]', False)}", numbers.hidden)
        target, dtype = ("y", self.result_dtype) if self.operation.projection is None else ("hidden", "int8")
        value = clamped(f"{product}{plus(numbers.hidden_zero)}", numbers.low, numbers.high, dtype)
        self.lines.add(f"{target}[i] = {value};")

    def steps(self) -> None:
        """Append the cells and their products with the output gate."""
        size, lines = self.size, self.lines
        output = size.gates - 1
        if self.operation.norms is None:
            with lines.loop("i", size.cells):
                lines.add(f"int32_t gate[{size.gates}];", "")
                self.sums("gate[g]")
                for g in range(size.cell):
                    self.peep("gate[{g}]", g)
                self.cell("gate[{g}]")
                self.peep("gate[{g}]", output)
                self.result("gate[{g}]")
            return
        at = f"gates[{{g}} * {size.cells} + i]"
        with lines.loop("i", size.cells):
            self.sums(at.format(g="g"))
        if self.operation.peepholes is not None:
            with lines.loop("i", size.cells):
                for g in range(size.cell):
                    self.peep(at, g)
        for g in range(output):
            self.normalise(g)
        with lines.loop("i", size.cells):
            self.cell(at)
            self.peep(at, output)
        self.normalise(output)
        with lines.loop("i", size.cells):
            self.result(at)

    def project(self) -> None:
        """Append the projection of a step."""
        projection, cells = self.numbers.projection, self.size.cells
        if projection is None:
            return
        with self.lines.loop("o", self.size.units):
            self.lines.add("int32_t sum = projection_bias[o];", "")
            with self.lines.loop("k", cells):
                self.lines.add(f"sum += hidden[k] * projection[o * {cells} + k];")
            text = f"{self.times('sum', projection.by)}{plus(projection.zero)}"
            low, high = -128, 127
            if projection.clip > 0:
                low, high = max(low, -projection.clip), min(high, projection.clip)
            self.lines.add(f"y[o] = {clamped(text, low, high, self.result_dtype)};")


@emits(IntegerMemory)
def lstm(operation: IntegerMemory) -> Call:
    """Return the call."""
    writer = _LstmFunction(operation)
    size, lines, kind = writer.size, writer.lines, writer.kind
    with lines.loop("n", size.batch), lines.loop("t", size.steps):
        lines.add(f"const {kind} *x = data + {size.row(size.length)};", f"{kind} *h = last + n * {size.units};")
        lines.add(f"int16_t *c = cell + n * {size.cells};", f"{kind} *y = result + {size.row(size.units)};", "")
        writer.steps()
        writer.project()
        lines.add(f"memcpy(h, y, {size.units} * sizeof({kind}));")
    operands = writer.operands()
    helpers = tuple(sorted(writer.helpers))
    function = Function("lstm", tuple(operands.parameters), str(lines), helpers, ("string.h",))
    return Call(function, tuple(operands.arguments), operation.label)
