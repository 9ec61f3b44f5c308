# SPDX-License-Identifier: Apache-2.0
"""Sums and products of two arrays of int8 values. Sums take the rescaled operands from tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.mla.assembly import NAKED, End, end_of, naked, numbers_of
from opwest.importers.models.emit.kernels.scaling import Scaling, scaling_of
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.ir.elements import Product
from opwest.importers.models.ir.functions import AddQuantised
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.operators.fixed_point import Multiplier, Requantisation, Rounding, scaled
from opwest.records import dataclass

UNROLLED = 4
LEAST = 16
"""Fewer elements are not worth a function and tables."""


@emits(Elementwise, "mla-tables")
def render(operation: Elementwise) -> Call | None:
    """Return the call; None: other functions, dtypes or shapes."""
    values = [*operation.inputs, *operation.results]
    function = operation.function
    if any(one.dtype != "int8" or one.shape != values[-1].shape for one in values) or values[-1].size < LEAST:
        return None
    if isinstance(function, AddQuantised):
        return _sum(operation, function)
    return _product(operation, function) if isinstance(function, Product) else None


@dataclass(frozen=True, eq=False)
class SumLoop:
    """The function for the sums of two arrays, and its constants."""

    name: str
    text: str
    arrays: list[Any]
    """Two tables, and the numbers of the end."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters for the constants."""
        return ("table_a", "table_b", "total")

    def call(self, operands: tuple[str, str], result: str, count: int) -> str:
        """Return the call for arrays of `count` elements."""
        given = "(uintptr_t)table_a, (uintptr_t)table_b, total"
        return f"{self.name}({operands[0]}, {operands[1]}, {result}, {count}, {given});"


def _sum(operation: Elementwise, function: AddQuantised) -> Call | None:
    found = sum_loop(function)
    return None if found is None else _call(operation, "add", found.name, found.text, found.arrays)


def sum_loop(function: AddQuantised) -> SumLoop | None:
    """Return the loop of a sum: two tables, by the bits of a value. None: numbers that do not fit."""
    numbers = function.numbers
    tables = [
        _table(zero, multiplier, numbers.left_shift)
        for zero, multiplier in zip(numbers.zeros, numbers.multipliers, strict=True)
    ]
    if function.subtract:
        tables[1] = -tables[1]
    bound = sum(int(np.abs(one).max()) for one in tables)
    scaling = _scaling(numbers.result, numbers.zero, numbers.low, numbers.high, bound)
    if scaling is None:
        return None
    # The product with the multiplier is that of twice the sum.
    wide = [(2 * one).astype(np.int32) for one in tables]
    end = end_of(scaling)
    name = f"mla_sum_{end.name}"
    loads = ["ldrb {x}, [r0], #1", "ldrb {z}, [r1], #1", "ldr {x}, [r4, {x}, lsl #2]", "ldr {z}, [r5, {z}, lsl #2]"]
    text = _loop(name, [*loads, "add {x}, {x}, {z}"], end)
    return SumLoop(name, text, [*wide, _numbers(scaling)])


def _product(operation: Elementwise, function: Product) -> Call | None:
    """Return the call of a product."""
    numbers = function.numbers
    most = [max(127 - zero, 128 + zero) for zero in numbers.zeros]
    scaling = _scaling(numbers.multiplier, numbers.zero, numbers.low, numbers.high, most[0] * most[1])
    if scaling is None:
        return None
    end = end_of(scaling)
    name = f"mla_product_{end.name}"
    loads = ["ldrsb {x}, [r0], #1", "ldrsb {z}, [r1], #1", "sub {x}, {x}, r4", "add {x}, {x}, {x}", "sub {z}, {z}, r5"]
    text = _loop(name, [*loads, "mul {x}, {x}, {z}"], end)
    zeros = np.asarray(numbers.zeros, np.int32)
    return _call(operation, "multiply", name, text, [np.concatenate([zeros, _numbers(scaling)])])


def _table(zero: int, multiplier: Multiplier, left_shift: int) -> Any:
    """Return the rescaled values in the order of their bits, 0 to 127 first."""
    values = (np.arange(256) ^ 128) - 128
    return scaled((values - zero) << left_shift, multiplier.fixed, multiplier.shift, Rounding.TWICE)


def _scaling(multiplier: Multiplier, zero: int, low: int, high: int, bound: int) -> Scaling | None:
    return scaling_of(Requantisation((multiplier,), Rounding.TWICE, zero, low, high), [bound])


def _numbers(scaling: Scaling) -> Any:
    return numbers_of(scaling, None, 1)[0, 1:]


def _loop(name: str, value: list[str], end: End) -> str:
    """Return a function of two operands, the result, a number of elements; then r4 and r5, and the numbers of the end.

    `value` is the code that computes twice an element in {x}.
    """
    parameters = ["const int8_t *a", "const int8_t *b", "int8_t *y", "uint32_t count"]
    parameters += ["uintptr_t r4", "uintptr_t r5", "const int32_t *numbers"]
    lines = ["push {r4-r9, lr}", "ldr r4, [sp, #28]", "ldr r5, [sp, #32]", "ldr r12, [sp, #36]"]
    lines += ["ldmia r12, {r6, r7, r8}"]

    def one() -> list[str]:
        found = [line.format(x="r9", z="r12") for line in value]
        # The sum is complete: the first line of an end adds the bias.
        return [*found, *end.lines("r9", ["", "r6", "r7", "r8"], "r12")[1:], "strb r9, [r2], #1"]

    lines += [f"subs r3, r3, #{UNROLLED}", "blo 2f", "1:", *(UNROLLED * one())]
    lines += [f"subs r3, r3, #{UNROLLED}", "bhs 1b", "2:", f"adds r3, r3, #{UNROLLED}", "beq 4f", "3:", *one()]
    return naked(name, parameters, [*lines, "subs r3, r3, #1", "bne 3b", "4:", "pop {r4-r9, pc}"])


def _call(operation: Elementwise, base: str, name: str, text: str, arrays: list[Any]) -> Call:
    a, b = operation.inputs
    [result] = operation.results
    names = ("table_a", "table_b", "numbers") if len(arrays) == 3 else ("numbers",)
    given = "(uintptr_t)table_a, (uintptr_t)table_b, numbers"
    if len(arrays) == 1:
        given = "(uintptr_t)numbers[0], (uintptr_t)numbers[1], numbers + 2"
    parameters = (
        Parameter("a", "int8"),
        Parameter("b", "int8"),
        *(Parameter(one, "int32") for one in names),
        Parameter("result", "int8", "out", ("a", "b")),
    )
    function = Function(
        base, parameters, f"\t{name}(a, b, result, {result.size}, {given});\n", definitions=(NAKED, text)
    )
    return Call(function, (a, b, *arrays, result), operation.label)
