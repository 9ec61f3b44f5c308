# SPDX-License-Identifier: Apache-2.0
"""Sums, differences and products of float32 elements by functions of runs: void f(a, b, result, count, limits)."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.expressions import times
from opwest.compiler.emission.function import Call, Lines, call_for
from opwest.compiler.ir.elements import Arithmetic
from opwest.compiler.ir.operations import Clamp, Elementwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.floats.tiles import limits_of

NAMES = {"+": "add", "-": "subtract", "*": "multiply"}
INSTRUCTIONS = {"+": "vadd.f32", "-": "vsub.f32", "*": "vmul.f32"}
PARAMETERS = ("const float *a", "const float *b", "float *result", "int32_t count", "const int32_t *limits")
SHORTEST = 4
"""The least length of a run: calls for shorter ones cost more than they save."""


@dataclass(frozen=True)
class Run(ABC):
    """A function of runs of at least one element. An operand with the stride 0 is one element."""

    operator: str
    strides: tuple[int, int]
    has_low: bool
    has_high: bool

    @property
    def shape(self) -> str:
        """The part of names that stands for the numbers."""
        limits = f"{'_low' * self.has_low}{'_high' * self.has_high}"
        return f"{NAMES[self.operator]}_{self.strides[0]}{self.strides[1]}{limits}"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the function."""

    @abstractmethod
    def definition(self) -> str:
        """Return the C text of the function."""

    def fallback(self) -> str:
        """Return the C of the function."""
        lines = Lines()
        if self.has_low or self.has_high:
            names = [name for name, used in (("low", self.has_low), ("high", self.has_high)) if used]
            lines.add(f"float {', '.join(names)};", "")
            lines.add(*(f"__builtin_memcpy(&{name}, limits + {int(name == 'high')}, 4);" for name in names), "")
        a, b = (f"*{name}" if stride == 0 else f"{name}[i]" for name, stride in zip("ab", self.strides, strict=True))
        with lines.block("for (int32_t i = 0; i < count; i++)"):
            value = f"{a} {self.operator} {b}"
            if not self.has_low and not self.has_high:
                lines.add(f"result[i] = {value};")
            else:
                lines.add(f"const float value = {value};", "")
                low, high = "value < low ? low : " * self.has_low, "value > high ? high : " * self.has_high
                lines.add(f"result[i] = {low}{high}value;")
        return f"static void {self.name}({', '.join(PARAMETERS)})\n{{\n{lines}}}\n"


def elements_call(operation: Elementwise, kind: Callable[[str, tuple[int, int], bool, bool], Run]) -> Call | None:
    """Return the call; None for other functions, dtypes, and short runs."""
    function, [result] = operation.function, operation.results
    dtypes = {value.dtype for value in (*operation.inputs, result)}
    if not isinstance(function, Arithmetic) or function.operator not in NAMES or dtypes != {"float32"}:
        return None
    counts, strides = joined([value.shape for value in operation.inputs], result.shape, has_rows=bool(result.pitch))
    inner = (strides[0][-1], strides[1][-1])
    if counts[-1] < SHORTEST or inner not in ((1, 1), (1, 0), (0, 1)):
        return None
    run = kind(function.operator, inner, function.low is not None, function.high is not None)
    lines = Lines()
    if len(counts) > 1:
        lines.add("float *y = result;", "")
    with contextlib.ExitStack() as stack:
        for level, count in enumerate(counts[:-1]):
            stack.enter_context(lines.loop(f"i{level}", count))
        places = []
        for name, each in zip("ab", strides, strict=True):
            terms = [times(f"i{level}", stride) for level, stride in enumerate(each[:-1]) if stride]
            places.append(" + ".join([name, *terms]))
        y = "y" if len(counts) > 1 else "result"
        lines.add(f"{run.name}({places[0]}, {places[1]}, {y}, {counts[-1]}, limits);")
        if len(counts) > 1:
            lines.add(f"y += {result.pitch or counts[-1]};")
    in_place = tuple(
        name
        for name, value in zip("ab", operation.inputs, strict=True)
        if value.size == result.size and not result.pitch
    )
    limits = np.asarray(limits_of(Clamp(function.low, function.high)), np.int32)
    arguments = dict(zip("ab", operation.inputs, strict=True)) | {"limits": limits}
    definitions = (NAKED, run.definition())
    return call_for(operation, NAMES[function.operator], lines, arguments, in_place, definitions=definitions)
