# SPDX-License-Identifier: Apache-2.0
"""Strided copies: joined loops, memcpy and memset for contiguous inner parts."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines, number
from opwest.importers.models.ir.movement import RESULT, Axis, Move, Region, simplified


@emits(Move, has_pitch=True)
def render(operation: Move) -> Call:
    """Return the call."""
    [result] = operation.results
    regions = [simplified(one) for one in operation.regions if all(axis.count for axis in one.axes)]
    used = [one for number, one in enumerate(operation.inputs) if any(r.source == number for r in regions)]
    names = dict(zip(used, _names(len(used)), strict=True))
    arrays: dict[bytes, tuple[str, Any]] = {}
    lines = Lines()
    texts = set()
    for region in regions:
        source = "result" if region.source == RESULT else None
        if source is None and region.source is not None:
            source = names[operation.inputs[region.source]]
        _Region(lines, region, source, result.dtype, arrays).add()
        texts.add(_is_infinite(region.fill))
    body = str(lines)
    headers = [*(["string.h"] if "mem" in body else []), *(["math.h"] if True in texts else [])]
    parameters = [
        *(Parameter(name, one.dtype) for one, name in names.items()),
        *(Parameter(name, str(array.dtype)) for name, array in arrays.values()),
        Parameter("result", result.dtype, "out"),
    ]
    function = Function("move", tuple(parameters), body, (), tuple(headers))
    return Call(function, (*used, *(array for _, array in arrays.values()), result), operation.label)


def _names(count: int) -> Sequence[str]:
    return ["data"] if count == 1 else [f"data{i}" for i in range(count)]


def _is_infinite(value: float) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


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
        found = set(np.asarray(self.region.fill).astype(self.dtype).tobytes())
        return found.pop() if len(found) == 1 else None

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
