# SPDX-License-Identifier: Apache-2.0
"""Reductions: loops over the kept dimensions, and inside of them over the joined ones."""

from __future__ import annotations

import contextlib
from math import prod

from opwest.importers.models.emit.expressions import clamped, plus, scale_twice
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.ir.reduction import Reduce

Loops = list[tuple[int, int]]
"""Counts and strides."""


def loops_of(shape: Shape, axes: tuple[int, ...]) -> tuple[Loops, Loops]:
    """Return the kept and the joined dimensions as loops; neighbours of one sort are one loop."""
    groups: list[tuple[bool, int, int]] = []
    for axis, count in enumerate(shape):
        if count == 1:
            continue
        is_joined, stride = axis in axes, prod(shape[axis + 1 :])
        if groups and groups[-1][0] == is_joined:
            groups[-1] = (is_joined, groups[-1][1] * count, stride)
        else:
            groups.append((is_joined, count, stride))
    return [(n, s) for joined, n, s in groups if not joined], [(n, s) for joined, n, s in groups if joined]


@emits(Reduce)
def render(operation: Reduce) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    kept, joined = loops_of(data.shape, operation.axes)
    count = prod(n for n, _ in joined)
    lines, body = Lines(), _body(operation, data.dtype, count)
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        for level, (turns, _) in enumerate(kept):
            stack.enter_context(lines.loop(f"i{level}", turns))
        terms = [_term(f"i{level}", stride) for level, (_, stride) in enumerate(kept)]
        lines.add(f"const {c_type(data.dtype)} *p = {' + '.join(['data', *terms])};", *body.start, "")
        with contextlib.ExitStack() as inner:
            for level, (turns, _) in enumerate(joined):
                inner.enter_context(lines.loop(f"j{level}", turns))
            place = " + ".join(_term(f"j{level}", stride) for level, (_, stride) in enumerate(joined))
            lines.add(*(line.replace("@", f"p[{place or '0'}]") for line in body.step))
        lines.add(*body.end)
    parameters = (Parameter("data", data.dtype), Parameter("result", result.dtype, "out"))
    function = Function(f"reduce_{operation.kind}", parameters, str(lines), body.helpers, body.headers)
    return Call(function, (data, result), operation.label)


def _term(name: str, stride: int) -> str:
    return name if stride == 1 else f"{name} * {stride}"


class _Body:
    """The lines around and inside of the loops over the joined elements; @ is an element."""

    def __init__(self, start: list[str], step: list[str], end: list[str]) -> None:
        self.start, self.step, self.end = start, step, end
        self.helpers: tuple[str, ...] = ()
        self.headers: tuple[str, ...] = ()


def _body(operation: Reduce, dtype: str, count: int) -> _Body:
    kind = operation.kind
    if operation.finish is not None:
        return _product(operation, count) if kind == "product" else _sum(operation, count)
    if kind in ("any", "all"):
        operator, first = ("|=", 0) if kind == "any" else ("&=", 1)
        return _Body([f"uint8_t value = {first};"], [f"value {operator} @;"], ["*y++ = value;"])
    if kind in ("maximum", "minimum"):
        sign = ">" if kind == "maximum" else "<"
        start = [f"{c_type(dtype)} value = p[0];"]
        return _Body(start, [f"value = @ {sign} value ? @ : value;"], ["*y++ = value;"])
    first, operator = (1, "*=") if kind == "product" else (0, "+=")
    if dtype == "float32":
        end = [f"*y++ = value / {count};" if kind == "mean" else "*y++ = value;"]
        return _Body([f"float value = {first};"], [f"value {operator} @;"], end)
    if kind == "mean":
        # TFLite adds int32 elements in 64 bits.
        return _Body(
            ["uint64_t value = 0;"], ["value += (uint64_t)@;"], [f"*y++ = ({c_type(dtype)})((int64_t)value / {count});"]
        )
    unsigned = "uint64_t" if dtype == "int64" else "uint32_t"
    return _Body(
        [f"{unsigned} value = {first};"], [f"value {operator} ({unsigned})@;"], [f"*y++ = ({c_type(dtype)})value;"]
    )


def _sum(operation: Reduce, count: int) -> _Body:
    """Return the body of a quantised sum or mean."""
    finish = operation.finish
    assert finish is not None
    [by] = finish.multipliers
    text, helper = scale_twice(f"sum{plus(-operation.zero * count)}", by)
    end = clamped(f"{text}{plus(finish.zero)}", finish.low, finish.high, operation.results[0].dtype)
    body = _Body(["int32_t sum = 0;"], ["sum += @;"], [f"*y++ = {end};"])
    body.helpers = ("clamp", helper)
    return body


def _product(operation: Reduce, count: int) -> _Body:
    """Return the body of a quantised product: the first element is not rescaled."""
    finish = operation.finish
    assert finish is not None
    [by] = finish.multipliers
    reduced = (by.fixed + (1 << 15)) >> 16 if by.fixed < 0x7FFF0000 else 0x7FFF
    numbers = f"{reduced}, {15 - by.shift}"
    element = f"(@{plus(-operation.zero)})"
    step = [
        f"value = is_first ? {element} : scale_once((int64_t)value * {element}, {numbers});",
        "is_first = 0;",
    ]
    scaled = f"scale_once(value, {numbers}){plus(finish.zero)}"
    end = clamped(scaled, finish.low, finish.high, operation.results[0].dtype)
    body = _Body(["int32_t value = 0;", "int is_first = 1;"], step, [f"*y++ = {end};"])
    body.helpers = ("clamp", "scale_once")
    return body
