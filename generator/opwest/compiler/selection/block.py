# SPDX-License-Identifier: Apache-2.0
"""One block of layers in stripes: the rows of each call, the buffers between the layers, and the memory of all.

The last layer computes some rows of its result at a time. Before each call of a layer, the layers before it compute the
rows that it reads. A buffer has room for the rows of a tensor that a layer still reads; before rows are added, the
others are dropped, and the rest moves to the start of the buffer. Each row is computed once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Depthwise, Elementwise, Pool
from opwest.compiler.ir.program import Operation, Value
from opwest.compiler.ir.stripes import ALIGN, Buffer, Layer, Source, Striped, pitch_of
from opwest.compiler.semantics.fixed_point import RANGES


@dataclass(frozen=True)
class Reading:
    """How a layer reads the rows of one of its inputs."""

    stride: int = 1
    before: int = 0
    reach: int = 1
    fill: int | None = None
    """The value of the bytes of rows outside of the input; None: no such row is read."""


@dataclass(frozen=True, eq=False)
class Part:
    """A layer for some rows, in the variant with the least cycles."""

    operation: Operation
    variant: str
    scratch: int
    """Bytes."""


def readings(operation: Operation) -> tuple[Reading, ...] | None:
    """Return how a layer reads its inputs that are no constants; None if it cannot be computed row by row."""
    if type(operation) not in (Convolution, ConvolutionSum, Depthwise, Pool, Elementwise):
        return None
    if isinstance(operation, Elementwise) and operation.forbidden is not None:  # a layer of a block returns no status
        return None
    data = [value for value in operation.inputs if value.role != "constant"]
    [result] = operation.results
    if not data or any(len(value.shape) != 4 or value.shape[0] != 1 or value.pitch for value in (*data, result)):
        return None
    if isinstance(operation, Elementwise):
        constants = [value for value in operation.inputs if value.role == "constant"]
        is_by_row = all(value.shape == result.shape for value in data)
        is_by_row = is_by_row and all(len(constant.shape) < 3 or constant.shape[-3] == 1 for constant in constants)
        return tuple(Reading() for _ in data) if is_by_row else None
    if len(data) < len(operation.inputs):  # a constant operand of a sum has all rows
        return None
    first = _window_reading(operation)
    return None if first is None else (first, *(Reading() for _ in data[1:]))


def _window_reading(operation: Operation) -> Reading | None:
    window = operation.window  # type: ignore[attr-defined]
    height, dtype = operation.inputs[0].shape[1], operation.inputs[0].dtype
    stride, before = window.stride[0], window.before[0]
    reach = window.reach(0)
    if before == 0 and window.span(0) <= height:
        return Reading(stride, 0, reach)
    if isinstance(operation, Pool):
        # Elements of the padding do not count: the least value is no maximum, but averages have another divisor.
        fill = RANGES[dtype][0] if operation.kind == "maximum" and dtype in ("int8", "uint8") else None
    else:
        zero = operation.zero  # type: ignore[attr-defined]
        fill = zero if zero == 0 or np.dtype(dtype).itemsize == 1 else None
    return None if fill is None else Reading(stride, before, reach, fill)


def part_of(operation: Operation, count: int) -> Operation:
    """Return a layer for `count` rows of its result, with values of its own."""
    all_readings = readings(operation)
    assert all_readings is not None
    pending = iter(all_readings)
    inputs = []
    for value in operation.inputs:
        if value.role == "constant":
            inputs.append(value)
        else:
            reading = next(pending)
            inputs.append(_rows(value, "input", (count - 1) * reading.stride + reading.reach))
    changes: dict[str, object] = {"inputs": tuple(inputs), "results": (_rows(operation.results[0], "output", count),)}
    window = getattr(operation, "window", None)
    if window is not None:
        changes["window"] = dataclasses.replace(window, before=(0, window.before[1]), result=(count, window.result[1]))
    return dataclasses.replace(operation, **changes)  # type: ignore[arg-type]


def _rows(value: Value, role: str, count: int) -> Value:
    return Value(role, role, value.dtype, (1, count, *value.shape[2:]), value.quantization)


def divisor(number: int, most: int) -> int:
    """Return the largest divisor of a number that is at most `most`."""
    return next(count for count in range(min(number, most), 0, -1) if number % count == 0)


@functools.lru_cache(maxsize=1 << 14)  # the layouts are the same for all processors
def layout_of(operations: tuple[Operation, ...], turn: int, most: int) -> Layout | None:
    """Return the layout of a block of operations; None if they cannot be one.

    Only the last result is read after the block. A call of the last layer computes `turn` rows, calls of the others at
    most `most`.
    """
    layout = _without_sizes(operations, turn, most)
    if layout is None:
        return None
    run = _Run(layout)
    size, buffers = 0, []
    for buffer, rows in zip(layout.buffers, run.most, strict=True):
        buffers.append(dataclasses.replace(buffer, rows=rows, offset=size))
        size += -(-rows * buffer.pitch // ALIGN) * ALIGN
    in_place = tuple(sorted(run.replaceable))
    return dataclasses.replace(layout, buffers=tuple(buffers), size=size, in_place=in_place, moved=run.moved)


def block_of(
    operations: Sequence[Operation], layout: Layout, part: Callable[[Operation, int], Part], copies: str
) -> Striped:
    """Return the block of layers. `part` returns a layer for a number of rows."""
    parts = [part(operation, count) for operation, count in zip(operations, layout.counts, strict=True)]
    layers = tuple(
        Layer(made.operation, made.variant, count, height, tuple(sources))
        for made, count, height, sources in zip(parts, layout.counts, layout.heights, layout.sources, strict=True)
    )
    numbers = ",".join(dict.fromkeys(operation.label.split(" ", 1)[0] for operation in operations))
    turn = layout.counts[-1]
    return Striped(
        f"{numbers} ({len(operations)} layers in stripes of {turn} {'row' if turn == 1 else 'rows'})",
        tuple(layout.inputs),
        operations[-1].results,
        layers,
        layout.buffers,
        copies,
        layout.in_place,
        layout.size,
        layout.size + max(made.scratch for made in parts),
        layout.moved,
    )


@dataclass(frozen=True, eq=False)
class Layout:
    """The rows of each call of a layer in a block, and the buffers between the layers."""

    counts: Sequence[int]
    sources: Sequence[Sequence[Source]]
    heights: Sequence[int]
    """Of the results."""
    buffers: tuple[Buffer, ...]
    inputs: Sequence[Value]
    result: Value
    size: int = 0
    """The bytes of the buffers."""
    in_place: tuple[int, ...] = ()
    moved: int = 0


def _without_sizes(operations: Sequence[Operation], turn: int, most: int) -> Layout | None:
    numbers = {operation.results[0]: number for number, operation in enumerate(operations)}
    all_readings = [readings(operation) for operation in operations]
    if any(each is None for each in all_readings):
        return None
    given = [
        list(zip([v for v in operation.inputs if v.role != "constant"], some or (), strict=True))
        for operation, some in zip(operations, all_readings, strict=True)
    ]
    heights = [operation.results[0].shape[1] for operation in operations]
    rows = [0] * len(operations)
    rows[-1] = turn
    for number in reversed(range(len(operations))):
        for value, reading in given[number]:
            if value in numbers:
                producer = numbers[value]
                if producer >= number:
                    return None
                rows[producer] = max(rows[producer], rows[number] * reading.stride)
    if 0 in rows or heights[-1] % turn:
        return None
    counts = [divisor(height, min(some, most)) for height, some in zip(heights[:-1], rows, strict=False)]
    counts.append(turn)
    inputs = list(dict.fromkeys(value for some in given for value, _ in some if value not in numbers))
    buffers = _buffers(given, numbers, inputs)
    if buffers is None:
        return None
    places = {
        buffer.layer if buffer.layer is not None else ~buffer.input: number for number, buffer in enumerate(buffers)
    }

    def source(value: Value, one: Reading) -> Source:
        if value in numbers:
            return Source(places[numbers[value]], 0, one.stride, one.before, one.reach)
        number = inputs.index(value)
        return Source(None if one.fill is None else places[~number], number, one.stride, one.before, one.reach)

    sources = [[source(*pair) for pair in some] for some in given]
    return Layout(counts, sources, heights, tuple(buffers), inputs, operations[-1].results[0])


def _buffers(
    given: Sequence[Sequence[tuple[Value, Reading]]], numbers: Mapping[Value, int], inputs: Sequence[Value]
) -> list[Buffer] | None:
    """Return the buffers without their sizes: copies of inputs that are padded, then results of layers."""
    readers: dict[Value, list[Reading]] = {}
    for some in given:
        for value, reading in some:
            if value in numbers or reading.fill is not None:
                readers.setdefault(value, []).append(reading)
    buffers = []
    for value in (*inputs, *numbers):
        if value not in readers:
            continue
        fills = {reader.fill for reader in readers[value] if reader.fill is not None}
        if len(fills) > 1:
            return None
        layer, place = numbers.get(value), inputs.index(value) if value in inputs else 0
        top = max(reader.before for reader in readers[value])
        fill = fills.pop() if fills else 0
        buffers.append(Buffer(layer, place, pitch_of(value), value.shape[1], 0, top, fill, 0))
    return buffers


class _Run:
    """The calls of a block, with numbers of rows instead of data: what the emitted code does."""

    def __init__(self, shape: Layout) -> None:
        """Compute all rows of the result."""
        self.shape = shape
        self.readers: list[list[tuple[int, Source]]] = [[] for _ in shape.buffers]
        """By buffer: the layers that read it."""
        for layer, sources in enumerate(shape.sources):
            for source in sources:
                if source.buffer is not None:
                    self.readers[source.buffer].append((layer, source))
        self.next = [0] * len(shape.counts)
        """The row that each layer computes next."""
        self.first = [-buffer.top for buffer in shape.buffers]
        """The first row in each buffer."""
        self.filled = [0] * len(shape.buffers)
        """The rows of each buffer that are written, with the padding below."""
        self.most = [buffer.top for buffer in shape.buffers]  # the padding is written first
        """The rows that each buffer needs."""
        self.moved = 0
        self.replaceable = set(range(len(shape.inputs)))
        last = len(shape.counts) - 1
        while self.next[last] < shape.heights[last]:
            self._require(last)
            self._check_replacement(self.next[last] + shape.counts[last])
            self.next[last] += shape.counts[last]

    def _require(self, layer: int) -> None:
        """Compute the rows that the next call of a layer reads."""
        end = self.next[layer] + self.shape.counts[layer]
        for source in self.shape.sources[layer]:
            if source.buffer is not None:
                self._fill(source.buffer, (end - 1) * source.stride - source.before + source.reach)

    def _fill(self, buffer: int, need: int) -> None:
        """Write the rows of a buffer up to `need`."""
        one, inside = self.shape.buffers[buffer], min(need, self.shape.buffers[buffer].height)
        layer = one.layer
        if layer is None:
            if self.filled[buffer] < inside:
                self._drop(buffer)
                self.moved += (inside - self.filled[buffer]) * one.pitch
                self._grow(buffer, inside)
        else:
            while self.next[layer] < inside:
                self._require(layer)
                self._drop(buffer)
                self.next[layer] += self.shape.counts[layer]
                self._grow(buffer, self.next[layer])
        if self.filled[buffer] < need:
            self._drop(buffer)
            self._grow(buffer, need)

    def _drop(self, buffer: int) -> None:
        """Drop the rows that no layer reads any more."""
        # The first row that a layer still reads.
        rows = (self.next[layer] * source.stride - source.before for layer, source in self.readers[buffer])
        low = min(*rows, self.filled[buffer])
        if low > self.first[buffer]:
            self.moved += (self.filled[buffer] - low) * self.shape.buffers[buffer].pitch
            self.first[buffer] = low

    def _grow(self, buffer: int, end: int) -> None:
        self.filled[buffer] = max(self.filled[buffer], end)
        self.most[buffer] = max(self.most[buffer], self.filled[buffer] - self.first[buffer])

    def _check_replacement(self, end: int) -> None:
        """Drop the inputs with rows that the result overwrites before the last layer, or a later call, reads them."""
        shape = self.shape
        reached = end * pitch_of(shape.result)
        for number in list(self.replaceable):
            value = shape.inputs[number]
            lows = [value.shape[1]]
            for layer, sources in enumerate(shape.sources):
                for source in sources:
                    if source.buffer is None and source.input == number and self.next[layer] < shape.heights[layer]:
                        lows.append(self.next[layer] * source.stride - source.before)
            lows += [
                self.filled[place]
                for place, buffer in enumerate(shape.buffers)
                if buffer.layer is None and buffer.input == number and self.filled[place] < buffer.height
            ]
            if reached > min(lows) * pitch_of(value):
                self.replaceable.discard(number)
