# SPDX-License-Identifier: Apache-2.0
"""The loops of elementwise functions: dimensions are joined where all operands allow it."""

from __future__ import annotations

import contextlib
from math import prod
from typing import Any

from opwest.compiler.emission.expressions import Expression, expression_of
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Elementwise

NAMES = ("a", "b", "c", "d")


@emits(Elementwise, has_pitch=True)
def render(operation: Elementwise) -> Call:
    """Return the call."""
    [result] = operation.results
    shapes = [value.shape for value in operation.inputs]
    dtypes = [value.dtype for value in operation.inputs]
    expression = expression_of(operation.function, dtypes, result.dtype)
    lines = Lines()
    if operation.forbidden is not None:
        _check(lines, operation, operation.forbidden)
    dimensions, strides = joined(shapes, result.shape, has_rows=bool(result.pitch))
    skipped = result.pitch - result.shape[-1] if result.pitch else 0
    _loops(lines, dimensions, strides, expression, result.dtype, dtypes, skipped)
    in_place = tuple(
        name
        for name, value in zip(NAMES, operation.inputs, strict=False)
        if value.dtype == result.dtype and value.size == result.size and not result.pitch
    )
    arguments = {**dict(zip(NAMES, operation.inputs, strict=False)), **dict(expression.arrays)}
    has_status, headers = operation.forbidden is not None, expression.headers
    if has_status:
        lines.add("", "return 0;")
        headers = ("errno.h", *headers)
    return call_for(
        operation,
        expression.base,
        lines,
        arguments,
        in_place,
        helpers=expression.helpers,
        headers=headers,
        has_status=has_status,
    )


def _check(lines: Lines, operation: Elementwise, forbidden: tuple[int, int]) -> None:
    """Append the loop that ends the call for a divisor 0, before anything is written."""
    operand, value = forbidden
    data = operation.inputs[operand]
    zero = "0.0f" if data.dtype == "float32" else str(value)
    with lines.loop("i", data.size), lines.block(f"if ({NAMES[operand]}[i] == {zero})"):
        lines.add("return -EINVAL;")
    lines.add("")


def joined(shapes: list[Shape], result: Shape, has_rows: bool = False) -> tuple[list[int], list[list[int]]]:
    """Return the loops of a result and the strides of each operand: dimensions that can be one loop are joined.

    `has_rows`: the last dimension is a loop of its own.
    """
    rank = len(result)
    strides = []
    for shape in shapes:
        padded = (1,) * (rank - len(shape)) + tuple(shape)
        strides.append([0 if n == 1 else prod(padded[i + 1 :]) for i, n in enumerate(padded)])
    dimensions: list[int] = []
    kept: list[list[int]] = [[] for _ in shapes]
    for axis, count in enumerate(result):
        is_row = has_rows and axis == rank - 1
        if count == 1 and not is_row:
            continue
        can_join = (
            bool(dimensions)
            and not is_row
            and all(k[-1] == s[axis] * count for k, s in zip(kept, strides, strict=True))
        )
        if can_join:
            dimensions[-1] *= count
            for k, s in zip(kept, strides, strict=True):
                k[-1] = s[axis]
        else:
            dimensions.append(count)
            for k, s in zip(kept, strides, strict=True):
                k.append(s[axis])
    if not dimensions:
        return [1], [[0] for _ in shapes]
    return dimensions, kept


def _loops(
    lines: Lines,
    dimensions: list[int],
    strides: list[list[int]],
    expression: Expression,
    result: str,
    dtypes: list[Any],
    skipped: int,
) -> None:
    """Append the loops; the innermost one has the expression. `skipped`: the elements between rows of the result."""
    with contextlib.ExitStack() as stack:
        if len(dimensions) > 1:
            lines.add(f"{c_type(result)} *y = result;", "")
        for level, count in enumerate(dimensions[:-1]):
            stack.enter_context(lines.loop(f"i{level}", count))
        last = len(dimensions) - 1
        pointers = []
        for number, name in enumerate(NAMES[: len(dtypes)]):
            offsets = [
                f"i{level}" if stride == 1 else f"i{level} * {stride}"
                for level, stride in enumerate(strides[number][:-1])
                if stride
            ]
            if offsets and len(dimensions) > 1:
                lines.add(f"const {c_type(dtypes[number])} *p{name} = {name} + {' + '.join(offsets)};")
                pointers.append(f"p{name}")
            else:
                pointers.append(name)
        if any(pointer.startswith("p") for pointer in pointers):
            lines.add("")
        with lines.loop("i", dimensions[-1]):
            values = []
            for pointer, stride in zip(pointers, (s[last] for s in strides), strict=True):
                index = "0" if stride == 0 else "i" if stride == 1 else f"i * {stride}"
                values.append(f"{pointer}[{index}]")
            lines.add(*(line.format(*values) for line in expression.lines))
            target = "*y++" if len(dimensions) > 1 else "result[i]"
            lines.add(f"{target} = {expression.value.format(*values)};")
        if skipped and len(dimensions) > 1:
            lines.add(f"y += {skipped};")
