# SPDX-License-Identifier: Apache-2.0
"""Copies: strided ones with joined loops, memcpy and memset; by indices; interpolation."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.emission.function import Call, Lines, c_type, call_of, emits, number
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.movement import (
    RESULT,
    Axis,
    GatherSlices,
    Interpolate,
    Lookup,
    Move,
    OneHot,
    Region,
    ScatterSlices,
    UpdateSlice,
    simplified,
)
from opwest.compiler.ir.operations import Copy


@emits(Copy)
def render_copy(operation: Copy) -> Call:
    """Return the call."""
    data, lines = operation.inputs[0], Lines()
    lines.add(f"memcpy(result, data, {data.size} * sizeof({c_type(data.dtype)}));")
    return call_of(operation, "copy", lines, headers=("string.h",))


@emits(Move, has_pitch=True)
def render_move(operation: Move) -> Call:
    """Return the call."""
    [result] = operation.results
    regions = [simplified(region) for region in operation.regions if all(axis.count for axis in region.axes)]
    used = [value for number, value in enumerate(operation.inputs) if any(r.source == number for r in regions)]
    names = {region: "data" if len(used) == 1 else f"data{number}" for number, region in enumerate(used)}
    arrays: dict[bytes, tuple[str, Any]] = {}
    lines = Lines()
    for region in regions:
        source = "result" if region.source == RESULT else None
        if source is None and region.source is not None:
            source = names[operation.inputs[region.source]]
        _Region(lines, region, source, result.dtype, arrays).add()
    is_infinite = any(isinstance(region.fill, float) and not math.isfinite(region.fill) for region in regions)
    headers = [*(["string.h"] if "mem" in str(lines) else []), *(["math.h"] if is_infinite else [])]
    return call_of(
        replace(operation, inputs=tuple(used)), "move", lines, list(names.values()), arrays.values(), headers=headers
    )


class _Region:
    """The text of a region."""

    def __init__(
        self, lines: Lines, region: Region, source: str | None, dtype: str, arrays: dict[bytes, tuple[str, Any]]
    ) -> None:
        self.lines = lines
        self.region = region
        self.source = source
        self.dtype = dtype
        self.arrays = arrays
        self.axes = [*region.axes]
        inner = self.axes[-1] if self.axes else None
        self.length = 1
        """The elements of a contiguous inner part."""
        if inner is None:
            self.is_block = region.table is None
        else:
            is_contiguous = inner.result == 1 and (source is None or inner.source == 1)
            self.is_block = is_contiguous and region.table is None and (source is not None or self._byte() is not None)
            if self.is_block:
                self.length = self.axes.pop().count

    def add(self) -> None:
        """Append the lines."""
        lines = self.lines
        place, start = str(self.region.place), str(self.region.start)
        last = len(self.axes) - (0 if self.is_block else 1)
        outer, inner = self.axes[:last], self.axes[last:]
        with contextlib.ExitStack() as stack:
            for level, axis in enumerate(outer):
                stack.enter_context(lines.loop(f"i{level}", axis.count))
            target = _sum("result", [place, *(_times(f"i{i}", axis.result) for i, axis in enumerate(outer))])
            origin = _sum(self.source or "", [start, *(self._step(f"i{i}", axis) for i, axis in enumerate(outer))])
            if not inner:
                self._block(target, origin)
                return
            if outer:
                kind = c_type(self.dtype)
                lines.add(f"{kind} *to = {target};")
                if self.source is not None:
                    lines.add(f"const {kind} *from = {origin};")
                lines.add("")
                target, origin, place, start = "to", "from", "0", "0"
            else:
                target, origin = "result", self.source or ""
            [axis] = inner
            with lines.loop("i", axis.count):
                left = f"{target}[{_index([place, _times('i', axis.result)])}]"
                if self.source is None:
                    lines.add(f"{left} = {number(self.region.fill, self.dtype)};")
                else:
                    right = f"{origin}[{_index([start, self._step('i', axis)])}]"
                    lines.add(f"{left} = {self._value(right)};")

    def _block(self, target: str, origin: str) -> None:
        """Append the copy of a contiguous part, or of one element."""
        lines = self.lines
        size = f"{self.length} * sizeof(*result)" if np.dtype(self.dtype).itemsize > 1 else str(self.length)
        if self.source is None:
            byte = self._byte()
            if self.length == 1 or byte is None:
                lines.add(f"*({target}) = {number(self.region.fill, self.dtype)};")
            else:
                lines.add(f"memset({target}, {byte}, {size});")
        elif self.length == 1:
            lines.add(f"*({target}) = {self._value(f'*({origin})')};")
        else:
            lines.add(f"memcpy({target}, {origin}, {size});")

    def _byte(self) -> int | None:
        """Return the value of all bytes of the fill; None if they differ."""
        values = set(np.asarray(self.region.fill).astype(self.dtype).tobytes())
        return values.pop() if len(values) == 1 else None

    def _value(self, text: str) -> str:
        if self.region.table is None:
            return text
        return f"{self._array('table', np.asarray(self.region.table, self.dtype))}[{text}]"

    def _step(self, variable: str, axis: Axis) -> str:
        if not isinstance(axis.source, tuple):
            return _times(variable, axis.source)
        is_short = min(axis.source) >= -32768 and max(axis.source) < 32768
        offsets = np.asarray(axis.source, np.int16 if is_short else np.int32)
        return f"{self._array('offsets', offsets)}[{variable}]"

    def _array(self, name: str, array: Any) -> str:
        """Return the parameter of an array; equal ones are passed once."""
        key = str(array.dtype).encode() + array.tobytes()
        if key not in self.arrays:
            self.arrays[key] = (f"{name}{len(self.arrays)}", array)
        return self.arrays[key][0]


def _times(variable: str, step: int) -> str:
    return "0" if step == 0 else variable if step == 1 else f"{variable} * {step}"


def _index(terms: Sequence[str]) -> str:
    """Return a sum without zeros; negative steps are subtractions."""
    kept = [term for term in terms if term != "0"]
    if not kept:
        return "0"
    text = kept[0]
    for term in kept[1:]:
        variable, _, step = term.partition(" * -")
        text += f" - {variable} * {step}" if step else f" + {term}"
    return text


def _sum(name: str, terms: Sequence[str]) -> str:
    index = _index(terms)
    return name if index == "0" else f"{name} + {index}"


def _bytes(count: int, of: str) -> str:
    return f"{count} * sizeof(*{of})"


def _offset(lines: Lines, lookups: Sequence[Lookup], index: str, first: str) -> None:
    """Append the checks of a tuple of indices, and `offset`: the element that it selects."""
    terms = []
    for place, lookup in enumerate(lookups):
        text = f"{index}[{first}{f' + {place}' if place else ''}]"
        with lines.block(f"if ({text} < 0 || {text} >= {lookup.limit})"):
            lines.add("return -EINVAL;")
        terms.append(f"(int32_t){text}" + (f" * {lookup.stride}" if lookup.stride != 1 else ""))
    lines.add(f"const int32_t offset = {' + '.join(terms)};", "")


def _loop(lines: Lines, name: str, count: int) -> Any:
    return lines.loop(name, count) if count > 1 else contextlib.nullcontext()


def _plus(*terms: tuple[str, int, int]) -> str:
    """Return a sum of loop variables times steps, without loops of one turn: name, count, step."""
    return "".join(f" + {name} * {step}" for name, count, step in terms if count > 1 and step)


@emits(GatherSlices)
def gather(operation: GatherSlices) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
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
    headers = ("errno.h",) if scales is not None or inner == 1 else ("errno.h", "string.h")
    inputs, constants = ("data", "indices"), [("scales", scales)]
    return call_of(operation, "gather", lines, inputs, constants, headers=headers, has_status=True)


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
    updates, result, lines = operation.inputs[1], operation.results[0], Lines()
    depth, inner = len(operation.lookups), operation.inner
    lines.add(f"memset(result, 0, {_bytes(result.size, 'result')});")
    with lines.loop("n", operation.tuples):
        _offset(lines, operation.lookups, "indices", f"n * {depth}" if depth > 1 else "n")
        lines.add(f"const {c_type(updates.dtype)} *from = updates + n * {inner};")
        lines.add(f"{c_type(result.dtype)} *to = result + offset;", "")
        with lines.loop("i", inner):
            lines.add(_SUMS[result.dtype])
    lines.add("return 0;")
    headers = ("errno.h", "string.h")
    return call_of(operation, "scatter", lines, ("indices", "updates"), headers=headers, has_status=True)


@emits(UpdateSlice)
def update(operation: UpdateSlice) -> Call:
    """Return the call. The result can replace the data."""
    data, part, _ = operation.inputs
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
    return call_of(operation, "update", lines, ("data", "part", "start"), in_place=("data",), headers=("string.h",))


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
    lines = Lines()
    lines.add(f"{c_type(operation.results[0].dtype)} *y = result;", "")
    with _loop(lines, "o", operation.outer), lines.loop("d", operation.depth), _loop(lines, "i", operation.inner):
        terms = _plus(("o", operation.outer, operation.inner), ("i", operation.inner, 1)).removeprefix(" + ")
        lines.add(f"*y++ = indices[{terms or 0}] == d ? *on : *off;")
    return call_of(operation, "one_hot", lines, ("indices", "on", "off"))


@emits(Interpolate)
def render_interpolation(operation: Interpolate) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    n, height, width, depth = data.shape
    rows, columns = result.shape[1:3]
    is_fixed = data.dtype in ("int8", "int16")
    kind = "int32" if is_fixed else "float32"
    arrays = []
    for name, line, step in (("row", operation.rows, width * depth), ("column", operation.columns, depth)):
        offsets = np.stack([np.asarray(line.first) * step, np.asarray(line.second) * step], axis=1).astype(np.int32)
        weights = np.stack([np.asarray(line.rests), np.asarray(line.weights)], axis=1).astype(kind)
        arrays += [(f"{name}s", offsets), (f"{name}_weights", weights)]
    lines = Lines()
    element, weight = c_type(data.dtype), c_type(kind)
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with lines.loop("n", n), lines.loop("r", rows):
        image = f"data + n * {height * width * depth}"
        lines.add(
            f"const {element} *top = {image} + rows[2 * r];",
            f"const {element} *bottom = {image} + rows[2 * r + 1];",
            f"const {weight} ry = row_weights[2 * r], wy = row_weights[2 * r + 1];",
            "",
        )
        with lines.loop("k", columns):
            lines.add(
                "const int32_t left = columns[2 * k], right = columns[2 * k + 1];",
                f"const {weight} rx = column_weights[2 * k], wx = column_weights[2 * k + 1];",
                "",
            )
            with lines.loop("c", depth):
                _element(lines, data.dtype, _sum_type(operation))
    helpers = ("product_float", "sum_float") if data.dtype == "uint8" else ()
    return call_of(operation, "interpolate", lines, constants=arrays, helpers=helpers)


_CORNERS = (
    ("top[left + c]", "ry", "rx"),
    ("bottom[left + c]", "wy", "rx"),
    ("top[right + c]", "ry", "wx"),
    ("bottom[right + c]", "wy", "wx"),
)
"""The elements, and the names of their weights."""


def _sum_type(operation: Interpolate) -> str:
    """Return the C type of the sums of fixed-point data."""
    most = 1 << (7 if operation.inputs[0].dtype == "int8" else 15)
    for line in (operation.rows, operation.columns):
        weights = np.abs(np.stack([np.asarray(line.weights), np.asarray(line.rests)]))
        most *= int(weights.sum(axis=0).max())
    return "int32_t" if most + (1 << 19) < 1 << 31 else "int64_t"


def _element(lines: Lines, dtype: str, kind: str) -> None:
    """Append one element. The order of the sums is that of the reference kernel."""
    if dtype in ("int8", "int16"):
        wide = "(int64_t)" if kind == "int64_t" else ""
        terms = [f"{wide}({x} * {a}) * {b}" for x, a, b in _CORNERS]
        lines.add(f"const {kind} sum = {terms[0]} + {terms[1]} +", f"\t{terms[2]} + {terms[3]};", "")
        # Rounded half away from zero: 1 less than the half is added to negative sums.
        lines.add(f"*y++ = ({c_type(dtype)})((sum + (1 << 19) - (sum < 0)) >> 20);")
        return
    if dtype == "float32":
        terms = [f"{x} * {a} * {b}" for x, a, b in _CORNERS]
        lines.add(f"*y++ = {terms[0]} + {terms[1]} +", f"\t{terms[2]} + {terms[3]};")
        return
    for name, (x, a, b) in zip("pqst", _CORNERS, strict=True):
        lines.add(f"const float {name} = product_float(product_float({x}, {a}), {b});")
    lines.add("", "*y++ = (uint8_t)sum_float(sum_float(sum_float(sum_float(p, q), s), t), 0.5f);")
