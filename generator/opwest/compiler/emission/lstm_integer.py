# SPDX-License-Identifier: Apache-2.0
"""LSTMs with int8 or int16 data, whose states their functions change in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.expressions import clamped, plus, scale_twice
from opwest.compiler.emission.function import Call, Lines, c_type, emits
from opwest.compiler.emission.lstm import Sizes, call_of_lstm, products, sizes_of
from opwest.compiler.ir.operations import IntegerMemory
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.compiler.semantics.tables import sigmoid_table

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
        self.data = [multiplier for multiplier in self.numbers.data if multiplier is not None]
        self.last = [multiplier for multiplier in self.numbers.last if multiplier is not None]

    def constants(self) -> list[tuple[str, Any]]:
        """Return the constants besides the arrays of all layers."""
        pairs = zip(self.data, self.last, strict=True)
        scales = np.asarray([self._pair(by) for pair in pairs for by in pair], np.int32)
        table = sigmoid_table() if self.numbers.is_micro else None
        return [("starts", self.operation.starts), ("scales", scales), ("table", table)]

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
        return (
            "scale_twice_left"
            if any(multiplier.shift > 0 for multiplier in (*self.data, *self.last))
            else "scale_twice"
        )

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
        norm = [normalisation for normalisation in self.numbers.norms if normalisation is not None][gate]
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
    return call_of_lstm(operation, lines, ("int16", "int8"), writer.constants(), (), writer.helpers, ("string.h",))
