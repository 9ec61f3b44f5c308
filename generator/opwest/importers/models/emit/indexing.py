# SPDX-License-Identifier: Apache-2.0
"""Copies by indices. An index outside of its dimension ends the call with -EINVAL before anything is accessed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from math import prod
from typing import Any

from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.ir.movement import GatherSlices, Lookup, OneHot, ScatterSlices, UpdateSlice


def _bytes(count: int, of: str) -> str:
    return f"{count} * sizeof(*{of})"


def _offset(lines: Lines, lookups: Sequence[Lookup], index: str, first: str) -> None:
    """Append the checks of a tuple of indices, and `offset`: the element that it selects."""
    terms = []
    for number, one in enumerate(lookups):
        text = f"{index}[{first}{f' + {number}' if number else ''}]"
        with lines.block(f"if ({text} < 0 || {text} >= {one.limit})"):
            lines.add("return -EINVAL;")
        terms.append(f"(int32_t){text}" + (f" * {one.stride}" if one.stride != 1 else ""))
    lines.add(f"const int32_t offset = {' + '.join(terms)};", "")


def _loop(lines: Lines, name: str, count: int) -> Any:
    return lines.loop(name, count) if count > 1 else contextlib.nullcontext()


def _plus(*terms: tuple[str, int, int]) -> str:
    """Return a sum of loop variables times steps, without loops of one turn: name, count, step."""
    return "".join(f" + {name} * {step}" for name, count, step in terms if count > 1 and step)


@emits(GatherSlices)
def gather(operation: GatherSlices) -> Call:
    """Return the call."""
    data, indices = operation.inputs
    [result] = operation.results
    depth, tuples, inner = len(operation.lookups), operation.tuples, operation.inner
    lines = Lines()
    scales = operation.scales
    with _loop(lines, "b", operation.batches), _loop(lines, "o", operation.outer), lines.loop("n", tuples):
        row = _plus(("b", operation.batches, tuples * depth))
        _offset(lines, operation.lookups, "indices", (f"n * {depth}" if depth > 1 else "n") + row)
        start = _plus(("b", operation.batches, operation.batch_stride), ("o", operation.outer, operation.outer_stride))
        lines.add(f"const {c_type(data.dtype)} *from = data{start} + offset;")
        place = _plus(
            ("b", operation.batches, operation.outer * tuples * inner), ("o", operation.outer, tuples * inner)
        )
        lines.add(f"{c_type(result.dtype)} *to = result{place} + n * {inner};", "")
        if scales is not None:
            at = "indices[n]" if len(scales) > 1 else "0"
            with lines.loop("i", inner):
                lines.add(f"to[i] = from[i] * scales[{at}];")
        elif inner == 1:
            lines.add("*to = *from;")
        else:
            lines.add(f"memcpy(to, from, {_bytes(inner, 'to')});")
    lines.add("return 0;")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("indices", indices.dtype),
        *(() if scales is None else (Parameter("scales", "float32"),)),
        Parameter("result", result.dtype, "out"),
    )
    headers = ("errno.h",) if scales is not None or inner == 1 else ("errno.h", "string.h")
    function = Function("gather", parameters, str(lines), (), headers, has_status=True)
    return Call(function, (data, indices, *(() if scales is None else (scales,)), result), operation.label)


_SUMS = {
    "float32": "to[i] += from[i];",
    "bool": "to[i] = to[i] || from[i];",
    "uint8": "to[i] = (uint8_t)(to[i] + from[i]);",
    "int8": "to[i] = (int8_t)(uint8_t)(to[i] + from[i]);",
    "int32": "to[i] = (int32_t)((uint32_t)to[i] + (uint32_t)from[i]);",
    "int64": "to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)from[i]);",
}
"""Additions that wrap."""


@emits(ScatterSlices)
def scatter(operation: ScatterSlices) -> Call:
    """Return the call."""
    indices, updates = operation.inputs
    [result] = operation.results
    depth, inner = len(operation.lookups), operation.inner
    lines = Lines()
    lines.add(f"memset(result, 0, {_bytes(result.size, 'result')});")
    with lines.loop("n", operation.tuples):
        _offset(lines, operation.lookups, "indices", f"n * {depth}" if depth > 1 else "n")
        lines.add(f"const {c_type(updates.dtype)} *from = updates + n * {inner};")
        lines.add(f"{c_type(result.dtype)} *to = result + offset;", "")
        with lines.loop("i", inner):
            lines.add(_SUMS[result.dtype])
    lines.add("return 0;")
    parameters = (
        Parameter("indices", indices.dtype),
        Parameter("updates", updates.dtype),
        Parameter("result", result.dtype, "out"),
    )
    function = Function("scatter", parameters, str(lines), (), ("errno.h", "string.h"), has_status=True)
    return Call(function, (indices, updates, result), operation.label)


@emits(UpdateSlice)
def update(operation: UpdateSlice) -> Call:
    """Return the call. The result can replace the data."""
    data, part, indices = operation.inputs
    [result] = operation.results
    lines = Lines()
    with lines.block("if (result != data)"):
        lines.add(f"memcpy(result, data, {_bytes(data.size, 'result')});")
    offset = _start(lines, data.shape, part.shape)
    rank = len(part.shape)
    # The inner dimensions that are updated completely are one block with the dimension before them.
    last = max((axis for axis in range(rank) if part.shape[axis] != data.shape[axis]), default=0)
    block = prod(part.shape[last:])
    with contextlib.ExitStack() as stack:
        place, source = offset, "part"
        for axis in range(last):
            if part.shape[axis] > 1:
                stack.enter_context(lines.loop(f"i{axis}", part.shape[axis]))
                place += f" + i{axis} * {prod(data.shape[axis + 1 :])}"
                source += f" + i{axis} * {prod(part.shape[axis + 1 :])}"
        lines.add(f"memcpy(result + {place}, {source}, {_bytes(block, 'result')});")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("part", part.dtype),
        Parameter("start", indices.dtype),
        Parameter("result", result.dtype, "out", ("data",)),
    )
    function = Function("update", parameters, str(lines), (), ("string.h",))
    return Call(function, (data, part, indices, result), operation.label)


def _start(lines: Lines, data: Shape, part: Shape) -> str:
    """Append the clamped starts; return the offset of the first element that is updated."""
    terms = []
    for axis, (n, m) in enumerate(zip(data, part, strict=True)):
        if n > m:
            text = f"start[{axis}]"
            lines.add(f"const int32_t s{axis} = {text} < 0 ? 0 : {text} > {n - m} ? {n - m} : (int32_t){text};")
            terms.append(f"s{axis} * {prod(data[axis + 1 :])}")
    lines.add("")
    return " + ".join(terms) or "0"


@emits(OneHot)
def one_hot(operation: OneHot) -> Call:
    """Return the call."""
    indices, on, off = operation.inputs
    [result] = operation.results
    lines = Lines()
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with _loop(lines, "o", operation.outer), lines.loop("d", operation.depth), _loop(lines, "i", operation.inner):
        terms = _plus(("o", operation.outer, operation.inner), ("i", operation.inner, 1)).removeprefix(" + ")
        lines.add(f"*y++ = indices[{terms or 0}] == d ? *on : *off;")
    parameters = (
        Parameter("indices", indices.dtype),
        Parameter("on", on.dtype),
        Parameter("off", off.dtype),
        Parameter("result", result.dtype, "out"),
    )
    return Call(Function("one_hot", parameters, str(lines)), (indices, on, off, result), operation.label)
