# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions as convolutions with a stride of 1: one for each phase of the place of a result.

The result at place y has the products with the weights k for which y + before - k is a multiple of the stride. Results
whose (y + before) / stride is the same read the same window of the data, hence windows are copied once for all phases.
The rows of a phase are the part of a window from its first to its last weight.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import folded, plain_weights
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import DirectConvolution
from opwest.compiler.kernels.mve import pairs
from opwest.compiler.kernels.mve.convolution import Output, general, held_rows
from opwest.compiler.kernels.mve.epilogue import Epilogue, epilogue_of
from opwest.compiler.kernels.mve.matrices import is_known
from opwest.compiler.kernels.mve.pairs import ITEMS, bounds_of
from opwest.compiler.kernels.mve.windows import Windows
from opwest.compiler.semantics.windows import Window

PHASES = 16
"""The most phases, each of which is a call."""
LENGTHS = 4
"""The most functions for rows of different lengths."""


@dataclass(frozen=True)
class Axis:
    """The rows or columns of a transposed convolution."""

    size: int
    stride: int
    before: int
    count: int
    """Of the result."""

    @property
    def taps(self) -> int:
        """The rows or columns of a window of the data."""
        return -(-self.size // self.stride)

    @property
    def first(self) -> int:
        """The first (y + before) / stride."""
        return self.before // self.stride

    @property
    def windows(self) -> int:
        """The number of windows."""
        return (self.count - 1 + self.before) // self.stride + 1 - self.first

    def weight(self, phase: int, tap: int) -> int:
        """Return the weight of a tap; it can be outside of the kernel."""
        return phase + self.stride * (self.taps - 1 - tap)

    def start(self, phase: int) -> int:
        """Return the place of the result of the first window, which is negative if it is outside of the result."""
        return self.first * self.stride + phase - self.before

    def range(self, phase: int) -> tuple[int, int]:
        """Return the first window whose result is inside, and the end of these windows."""
        start = self.start(phase)
        return -(-max(0, -start) // self.stride), (self.count - 1 - start) // self.stride + 1


@dataclass(frozen=True)
class Phase:
    """The results whose places have the same rest of the division by the stride."""

    down: int
    over: int
    first: int
    """The first byte of its part of a row."""
    weights: Any
    """[o,k] of that part."""


@dataclass(frozen=True)
class Phases:
    """A transposed convolution of weights [o,kh,kw,c] of int8."""

    window: Window
    """From the result to the data."""
    data: Shape
    item: int

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The rows and columns."""
        window = self.window
        parts = zip(window.size, window.stride, window.before, window.result, strict=True)
        down, over = (Axis(*part) for part in parts)
        return down, over

    @property
    def windows(self) -> Windows:
        """The windows of the data."""
        down, over = self.axes
        before = down.taps - 1 - down.first, over.taps - 1 - over.first
        window = Window((down.taps, over.taps), (1, 1), (1, 1), before, (down.windows, over.windows))
        depth = self.data[3] * self.item
        return Windows(window, (*self.data[:3], depth), depth, self.item)

    @property
    def row(self) -> int:
        """The bytes of a row of scratch memory."""
        return pairs.padded(self.windows.length)

    @property
    def held(self) -> int:
        """The rows of scratch memory."""
        return held_rows(self.row, self.axes[1].windows)

    def of(self, weights: Any) -> list[Phase]:
        """Return the phases, with weights for whole vectors."""
        (down, over), results = self.axes, len(weights)
        found = [
            self._phase(weights, (p, q))
            for p in range(min(down.stride, PHASES))
            for q in range(min(over.stride, PHASES))
        ]
        if len({part.weights.shape[1] for part in found}) <= LENGTHS:
            return found
        # Parts of different lengths would have a function each.
        whole = self.row // self.item
        made = []
        for part in found:
            wide = np.zeros((results, whole), np.int8)
            at = part.first // self.item
            wide[:, at : at + part.weights.shape[1]] = part.weights
            made.append(Phase(part.down, part.over, 0, wide))
        return made

    def _phase(self, weights: Any, phase: tuple[int, int]) -> Phase:
        (down, over), (results, kh, kw, depth) = self.axes, weights.shape
        whole = np.zeros((results, down.taps, over.taps, depth), np.int8)
        for u in range(down.taps):
            for v in range(over.taps):
                ky, kx = down.weight(phase[0], u), over.weight(phase[1], v)
                if ky < kh and kx < kw:
                    whole[:, u, v] = weights[:, ky, kx]
        is_used = [
            down.weight(phase[0], u) < kh and over.weight(phase[1], v) < kw
            for u in range(down.taps)
            for v in range(over.taps)
        ]
        used = np.flatnonzero(is_used) if any(is_used) else np.zeros(1, np.int64)
        flat = whole.reshape(results, -1)
        flat = np.pad(flat, ((0, 0), (0, self.row // self.item - flat.shape[1])))
        # A part starts with a word and has whole vectors, of which the last one is inside of the row.
        first, end = int(used[0]) * depth * self.item & ~3, int(used[-1] + 1) * depth * self.item
        vectors = pairs.padded(end - first) // 16
        if not pairs.is_unrolled(vectors, self.row):
            vectors = min(self.row // 16, max(vectors, pairs.UNROLLED + 1))
        first = min(first, self.row - 16 * vectors)
        part = flat[:, first // self.item : (first + 16 * vectors) // self.item]
        return Phase(*phase, first, np.ascontiguousarray(part))


@dataclass(frozen=True)
class PhaseOutput(Output):
    """Writes the results of all phases for the windows of a row."""

    axes: tuple[Axis, Axis] | None = None
    calls: tuple[tuple[Phase, str, int], ...] = ()
    """Each phase with its function and the place of its numbers."""
    row: int = 0
    held: int = 0

    def add(self, lines: Lines, result: str, count: int | str) -> None:
        """Append the calls for `count` windows up to the column ox."""
        assert self.axes is not None and isinstance(count, int)
        down, over = self.axes
        # The last windows of a row have a known place; others end at ox.
        is_last = count != self.held or over.windows == self.held
        x = over.windows - count
        if not is_last:
            lines.add(f"const int x = ox - {count};")
        for which, (phase, _, place) in enumerate(self.calls):
            (top, bottom), (left, right) = down.range(phase.down), over.range(phase.over)
            limits = [f"oy >= {top}"] * (top > 0) + [f"oy < {bottom}"] * (bottom < down.windows)
            target = f"{result} + ({self._place('oy', down, phase.down)}) * {over.count * self.channels}"
            numbers, rows = f"{self.numbers}{plus(place)}", "held"
            if is_last:
                begin, end = max(x, left), min(x + count, right)
                number, is_empty = str(end - begin), begin >= end
                rows += plus(phase.first + (begin - x) * self.row)
                target += plus((over.start(phase.over) + begin * over.stride) * self.channels)
            else:
                skipped = f"(x < {left} ? {left} - x : 0)" if left else ""
                cut = f" - (ox > {right} ? ox - {right} : 0)" if right < over.windows else ""
                number, is_empty = f"{count}{f' - {skipped}' if skipped else ''}{cut}", left >= right
                rows += plus(phase.first) + (f" + {skipped} * {self.row}" if skipped else "")
                column = f"(x + {skipped})" if skipped else "x"
                target += f" + ({self._place(column, over, phase.over)}) * {self.channels}"
            if top >= bottom or is_empty:
                continue
            with lines.block(f"if ({' && '.join(limits)})") if limits else nullcontext():
                self.call(lines, which, (rows, numbers, target, number))

    def _place(self, index: str, axis: Axis, phase: int) -> str:
        return f"{index} * {axis.stride}{plus(axis.start(phase))}"

    def call(self, lines: Lines, which: int, arguments: tuple[str, str, str, str]) -> None:
        """Append the call of the function of a phase: rows, numbers, results, number of rows."""
        lines.add(f"{self.calls[which][1]}({', '.join(arguments)});")


@emits(DirectConvolution, "mve-phases")
def render(operation: DirectConvolution) -> Call | None:
    """Return the call; None for other convolutions, weights that are data, other dtypes and ends, many phases."""
    data, by, result = *operation.inputs[:2], operation.results[0]
    if not operation.is_transposed or operation.groups != 1 or operation.window.dilation != (1, 1):
        return None
    if not all(is_known(value) for value in operation.inputs[1:]) or data.dtype not in ITEMS:
        return None
    weights = plain_weights(by.content, operation.zeros[1])
    if str(weights.dtype) != "int8" or result.dtype != data.dtype or np.prod(operation.window.stride) > PHASES:
        return None
    bias = operation.inputs[2].content.reshape(-1).astype(np.int64) if len(operation.inputs) > 2 else None
    phases = Phases(operation.window, data.shape, ITEMS[data.dtype])
    parts = phases.of(weights)
    biases = [folded(part.weights, bias, operation.zeros[0], data.dtype) for part in parts]
    biases = [np.zeros(len(weights), np.int64) if each is None else each for each in biases]
    bounds = [bounds_of(part.weights, each, data.dtype) for part, each in zip(parts, biases, strict=True)]
    if any(bound is None for bound in bounds):
        return None
    ending = epilogue_of(operation.finish, len(weights), np.max(bounds, axis=0), data.dtype)
    return None if ending is None else _call(operation, phases, parts, (biases, ending))


def _call(operation: DirectConvolution, phases: Phases, parts: list[Phase], end: tuple[list[Any], Epilogue]) -> Call:
    """Return the call that copies windows, and multiplies them by the weights of each phase."""
    data, biases, ending = operation.inputs[0], *end
    numbers, calls, texts = stream_of(phases, parts, biases, ending, operation.zeros[0])
    channels, over = len(biases[0]), phases.axes[1]
    size = over.count * operation.window.result[0] * channels
    output = PhaseOutput(
        "", channels, size, is_by_row=True, axes=phases.axes, calls=calls, row=phases.row, held=phases.held
    )
    lines = Lines()
    lines.add(f"const int8_t *from = {'' if phases.item == 1 else '(const int8_t *)'}data;")
    general(lines, phases.windows, output, phases.held, c_type(data.dtype))
    scratch = [Parameter("rows", "int32", "scratch", elements=(phases.held * phases.row + 16) // 4)]
    definitions = (*phases.windows.definitions(), *texts)
    arguments = {"data": data, "numbers": numbers}
    return call_for(operation, "transposed_convolution", lines, arguments, (), scratch, definitions=definitions)


def stream_of(
    phases: Phases, parts: list[Phase], biases: list[Any], ending: Epilogue, fill: int
) -> tuple[Any, tuple[tuple[Phase, str, int], ...], list[str]]:
    """Return the packed weights of all phases, the phases with functions and places in them, the functions."""
    streams, calls, texts, place = [], [], [], 0
    for part, bias in zip(parts, biases, strict=True):
        channels, length = part.weights.shape
        pitch = phases.window.stride[1] * channels
        row = 0 if phases.row == length * phases.item else phases.row
        name, text = pairs.function_of(length, channels, ending, phases.item, pitch, row=row)
        streams.append(pairs.packed(part.weights, bias, ending, fill, phases.item))
        calls.append((part, name, place))
        texts.append(text)
        place += streams[-1].size
    return np.concatenate(streams), tuple(calls), list(dict.fromkeys(texts))
