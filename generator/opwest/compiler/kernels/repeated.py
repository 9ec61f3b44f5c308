# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations of two operands as lines: one for each run of the innermost loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.expressions import times
from opwest.compiler.emission.function import Call, Lines, c_type, call_for
from opwest.compiler.ir.elements import AddQuantised, Plain, Prelu, Product, SquaredDifference
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Value
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.lines import GROUP, Form, Line

Makers = Mapping[tuple[type, str], Callable[..., Line | None]]
"""By the type of the function and the dtype: (function, whether the operands are exchanged, form, constant)."""


def render_lines(operation: Elementwise, makers: Makers) -> Call | None:
    """Return the call; None for functions, dtypes and numbers without a line.

    An operand is repeated under numpy's rule of broadcasting.
    """
    function, [result] = operation.function, operation.results
    if len(operation.inputs) != 2 or any(value.dtype != result.dtype for value in operation.inputs):
        return None
    make = makers.get((type(function), result.dtype))
    if make is None or result.size == 0:
        return None
    counts, strides = joined([value.shape for value in operation.inputs], result.shape)
    if counts == [1]:
        strides = [[1], [1]]
    constant = [value.role == "constant" for value in operation.inputs]
    steps = [stride[-1] for stride in strides]
    # The second operand of a line is the repeated one, else a constant.
    is_swapped = steps[0] == 0 or (steps == [1, 1] and constant[0] and not constant[1])
    order = [1, 0] if is_swapped else [0, 1]
    other = operation.inputs[order[1]]
    is_single = steps[order[1]] == 0
    is_folded = constant[order[1]] and other.root is None and other.size <= MAX_FOLDED
    form = (Form.WORD if is_single else Form.WORDS) if is_folded else (Form.ROW if is_single else Form.PAIR)
    line = make(function, is_swapped, form, _lines_of(other, counts[-1]) if is_folded else None)
    if line is None:
        return None
    order = order[::-1] if line.is_exchanged else order
    return _call(operation, line, counts, [strides[place] for place in order], order)


MAX_FOLDED = 1024
"""The elements up to which constants are stored as scaled values: up to four bytes for each."""
_BASES = {
    AddQuantised: "add",
    Product: "multiply",
    SquaredDifference: "squared_difference",
    Prelu: "prelu",
    Plain: "extreme",
}


def _lines_of(constant: Value, length: int) -> Any:
    """Return the elements of a constant as rows of a length, or all of them as one dimension."""
    return constant.content.reshape(-1, length if constant.size % length == 0 else 1)


def _call(operation: Elementwise, line: Line, counts: list[int], strides: list[list[int]], order: list[int]) -> Call:
    """Return the call of a line for each run; `order`: the operands of the line."""
    [result] = operation.results
    streamed, other = (operation.inputs[place] for place in order)
    lines, size = Lines(), counts[-1]
    with contextlib.ExitStack() as stack:
        if len(counts) > 1:
            lines.add(f"{c_type(result.dtype)} *y = result;", "")
        for level, count in enumerate(counts[:-1]):
            stack.enter_context(lines.loop(f"i{level}", count))
        places = [
            " + ".join([name, *(times(f"i{level}", stride) for level, stride in enumerate(some[:-1]) if stride)])
            for name, some in zip(("a", "b"), strides, strict=True)
        ]
        target = "y" if len(counts) > 1 else "result"
        lines.add(f"{line.name}({places[0]}, {places[1]}, constants, {target}, {size // GROUP}, {size % GROUP});")
        if len(counts) > 1:
            lines.add(f"y += {size};")
    arguments = {"a": streamed, "b": other if line.other is None else line.other, "constants": line.constants}
    whole = [name for name, value in (("a", streamed), ("b", other)) if value.size == result.size]
    in_place = tuple(name for name in whole if name == "a" or line.other is None)
    base = _BASES[type(operation.function)]
    return call_for(operation, base, lines, arguments, in_place, definitions=(NAKED, line.definition))
