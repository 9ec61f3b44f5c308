# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products of int8 values with two products in one multiplication (`pairs`)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.emission.matrix import blocks
from opwest.compiler.ir.operations import Clamp, Convolution, ConvolutionSum, Finish, Sums
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mla.assembly import Epilogue, epilogue_of, numbers_of
from opwest.compiler.kernels.mla.elements import SumLoop, sum_loop
from opwest.compiler.kernels.mla.pairs import Tile, pack, padding, stream, turn_of, way_of
from opwest.compiler.kernels.mla.windows import Windows
from opwest.compiler.kernels.scaling import Scaling, int8_sums, scaling_of
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding


def scaling_with_constants(finish: Finish, weights: Any, bias: Any, bounds: Any) -> Scaling | None:
    """Return the numbers of a layer, or None: weights int8 [channels, length], the bias with the data's zero point."""
    scaling = scaling_of(finish, bounds)
    if scaling or not isinstance(finish, Requantisation) or finish.rounding not in (Rounding.TWICE, Rounding.ONCE):
        return scaling
    channels = len(weights)
    given = finish.each(channels)
    finish = dataclasses.replace(finish, multipliers=given)
    bounds = np.asarray(bounds, np.int64)
    whole = weights.astype(np.int64)
    start = np.asarray(bias, np.int64)
    ends = np.stack([np.minimum(-128 * whole, 127 * whole), np.maximum(-128 * whole, 127 * whole)]).sum(axis=2) + start
    least, greatest = finish.apply(ends)
    # Results increase with sums, as long as a shift to the left does not overflow.
    lefts = np.asarray([max(multiplier.shift, 0) for multiplier in given])
    is_constant = (least == greatest) & (np.abs(ends).max(axis=0) << lefts < 1 << 31)
    reduced = tuple(
        Multiplier(0, 0) if constant else multiplier
        for multiplier, constant in zip(given, is_constant.tolist(), strict=True)
    )
    scaling = scaling_of(dataclasses.replace(finish, multipliers=reduced), np.where(is_constant, 0, bounds))
    if scaling is None:
        return None
    # A multiplier of 0 has the shift 1: the result is half of the addend.
    addends = np.where(is_constant, 2 * least, scaling.addends).astype(np.int32)
    return dataclasses.replace(scaling, addends=addends)


NO_ENDING = LayerEpilogue((), (), (), (), "")
MAX_SCRATCH = 8192
"""Bytes of widened rows."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The numbers of a layer: the same for all variants of this class."""

    weights: Any
    """int8 [channels, length]."""
    bias: Any
    """int32 [channels], with the data's zero point."""
    scaling: Scaling | None
    """None: sums are stored, and C computes the results."""
    end: Epilogue
    ending: LayerEpilogue
    """The end in C; nothing with a scaling."""
    windows: Windows
    rows: int
    is_plain: bool
    """Whether the rows of the data are the windows."""
    result: str
    """The dtype of the results."""
    total: SumLoop | None
    """The sum that the results are an operand of."""
    place: int
    """The operand that they are."""
    pitch: int
    """The elements from one pixel of the results to the next."""

    @property
    def channels(self) -> int:
        """The channels of the results."""
        return int(self.weights.shape[0])

    @property
    def length(self) -> int:
        """The products of a sum."""
        return int(self.weights.shape[1])


def layer_of(operation: Convolution) -> Layer | None:
    """Return the numbers; None: a layer of other dtypes or with groups."""
    data, result, finish = operation.inputs[0], operation.results[0], operation.finish
    given = int8_sums(operation)
    if given is None or isinstance(finish, Clamp) or (result.dtype != "int8" and not isinstance(finish, Sums)):
        return None
    weights, bias, bound = given
    channels = len(weights)
    rows = result.size // channels
    is_plain = operation.window.is_pointwise and data.size // operation.weights.shape[3] == rows
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    scaling = None if isinstance(finish, Sums) else scaling_with_constants(finish, weights, bias, bound)
    last = NO_ENDING if scaling else ending(finish, bound, operation.zero)
    windows = Windows(operation.window, shape, operation.zero)
    total, place = None, 0
    if isinstance(operation, ConvolutionSum):
        total, place = sum_loop(operation.function), operation.place
        if total is None:
            return None
    pitch = result.pitch or channels
    end = epilogue_of(scaling)
    return Layer(weights, bias, scaling, end, last, windows, rows, is_plain, result.dtype, total, place, pitch)


@emits(ConvolutionSum, "mla-pairs")
@emits(Convolution, "mla-pairs", has_pitch=True)
def render(operation: Convolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call; None: other dtypes, groups, too much scratch memory."""
    layer = layer_of(operation)
    if layer is None:
        return None
    steps = -(-layer.length // 2)
    rows = next((some for some in (3, 2, 1) if some <= layer.rows and some * steps * 4 <= MAX_SCRATCH), 0)
    if not rows:
        return None
    divided = parts_of(layer.channels, rows)
    turn = turn_of(steps, rows, max(some for _, _, some in divided), layer.end, loop_bytes)
    way = way_of(layer.weights, rows, divided)
    parts, words = [], []
    for first, count, some in divided:
        chosen = slice(first, first + count)
        numbers = partial(_numbers, layer, chosen)
        words.append(stream(layer.weights[chosen], numbers, some, steps, rows, way))
        parts.append((first, some, len(words[-1])))
    # The ends of the parts: their lengths are not those of other layers of the same shape.
    ends = (np.cumsum([len(word) for word in words]) + len(words)).astype(np.int32)
    counts = [some for some in (rows, layer.rows % rows) if some]
    tiles = [Tile(some, wide, steps, turn, rows, layer.end, way) for some in counts for _, wide, _ in parts]
    name, packing = pack(rows, way)
    text = _PairedFunction(layer, rows, steps, parts, turn, name, way).text()
    scratch = [Parameter("words", "int32", "scratch", elements=rows * steps)]
    windows = layer.windows
    if not layer.is_plain and windows.scratch:
        scratch.append(Parameter("edge", "int8", "scratch", elements=windows.scratch))
    small = [windows.small(rows, way)[1]] if not layer.is_plain and windows.is_small else []
    definitions = (NAKED, packing, *small, *dict.fromkeys(tile.text() for tile in tiles))
    return call_of(operation, layer, np.concatenate([ends, *words]), text, scratch, rows, definitions)


def _numbers(layer: Layer, chosen: slice, added: Any) -> Any:
    """Return the numbers of some channels, with an addition to their biases."""
    bias = layer.bias.astype(np.int64)
    bias[chosen] += added
    return numbers_of(layer.scaling, bias)[chosen]


def call_of(
    operation: Convolution,
    layer: Layer,
    weights: Any,
    text: str,
    scratch: list[Parameter],
    rows: int,
    definitions: tuple[str, ...],
    is_copied: bool = True,
) -> Call:
    """Return the call of a body for tiles of some rows; `is_copied`: rows are read before their results are written."""
    can_replace = is_copied and layer.is_plain and layer.channels <= layer.length and layer.result == "int8"
    can_replace = can_replace and layer.pitch == layer.channels
    if layer.end.is_sum and layer.result == "int8":
        scratch = [*scratch, Parameter("sums", "int32", "scratch", elements=rows * layer.channels)]
    arguments = {"data": operation.inputs[0], "weights": weights, **layer.ending.constants}
    total = layer.total
    if total is not None:
        scratch = [*scratch, Parameter("part", "int8", "scratch", elements=rows * layer.channels)]
        definitions = (*definitions, total.text)
        arguments |= {**total.constants, "other": operation.inputs[1]}
    is_dense = layer.is_plain and operation.inputs[0].size == layer.rows * layer.length
    return call_for(
        operation,
        "dense" if is_dense and layer.windows.data[1:3] == (1, 1) else "convolution",
        text,
        arguments,
        (*(["data"] * can_replace), *(["other"] * (total is not None))),
        scratch,
        helpers=layer.ending.helpers,
        headers=(*layer.ending.headers, "string.h"),
        definitions=definitions,
    )


def parts_of(channels: int, rows: int) -> list[tuple[int, int, int]]:
    """Return the parts of the channels: first, count, channels of a block."""
    wide = 2 if rows > 1 or (channels % 4 and channels % 2 == 0 and channels < 16) else 4
    return [(first, turns * some, some) for first, turns, some in blocks(channels, wide)]


@dataclass(frozen=True, eq=False)
class _PairedFunction:
    """The body of a convolution with two products for each multiplication."""

    layer: Layer
    rows: int
    steps: int
    parts: list[tuple[int, int, int]]
    """First channel, channels of a block, words."""
    turn: int
    pack: str
    way: str

    def text(self) -> str:
        """Return the body."""
        layer, lines = self.layer, Lines()
        lines.add(f"const int32_t *const end = words + {self.rows * self.steps};")
        lines.add(f"{c_type(layer.result)} *y = result;")
        if layer.is_plain:
            self._plain(lines)
        else:
            self._windows(lines)
        return str(lines)

    def _plain(self, lines: Lines) -> None:
        """Append the loop over rows of the data."""
        layer, length = self.layer, self.layer.length
        turns, rest = divmod(layer.rows, self.rows)
        advances = turns > 1 or rest > 0
        lines.add("const int8_t *x = data;", "")
        with lines.repeat("row", turns):
            self._pack_rows(lines, self.rows)
            if advances:
                lines.add(f"x += {self.rows * length};")
            self._tile(lines, self.rows, advances)
        if rest:
            self._pack_rows(lines, rest)
            self._tile(lines, rest, False)

    def _pack_rows(self, lines: Lines, count: int) -> None:
        """Append the widening of rows of the data at x."""
        length = self.layer.length
        for row in range(count):
            lines.add(f"{self.pack}(words{plus(row)}, x{plus(row * length)}, {length});")

    def _windows(self, lines: Lines) -> None:
        """Append the loops over windows: a tile is computed when its rows are complete."""
        layer, windows = self.layer, self.layer.windows
        lines.add("int filled = 0;", "")

        def load() -> None:
            if windows.is_small:
                windows.add_small(lines, "words + filled", self.pack, windows.small(self.rows, self.way)[0])
            elif windows.is_direct:
                windows.add_direct(lines, "words + filled", self.pack, self.rows, padding(windows.zero, self.way))
            else:
                windows.add_bytes(lines, "edge")
                lines.add(f"{self.pack}(words + filled, edge, {layer.length});")

        with windows.loop(lines, self.rows, load):
            self._tile(lines, self.rows, True)
        rest = layer.rows % self.rows
        if rest:
            self._tile(lines, rest, False)

    def _tile(self, lines: Lines, rows: int, advances: bool) -> None:
        """Append the calls for a tile."""
        names = [
            Tile(rows, wide, self.steps, self.turn, self.rows, self.layer.end, self.way).name
            for _, wide, _ in self.parts
        ]
        starts = [f"weights + {len(names)}", *(f"weights + weights[{place}]" for place in range(len(names)))]
        calls = [
            (name, first, start, end)
            for name, (first, _, _), start, end in zip(names, self.parts, starts, starts[1:], strict=False)
        ]
        add_tile(lines, self.layer, rows, calls, ("words", "end"))
        if advances:
            lines.add(f"y += {rows * self.layer.pitch};")


def add_tile(
    lines: Lines, layer: Layer, rows: int, calls: list[tuple[str, int, str, str]], data: tuple[str, str]
) -> None:
    """Append the calls for some rows, and the C code that ends their sums.

    `calls` are names of functions with the first channel, the start and the end of the weights; `data` are the start
    and the end of the rows.
    """
    result = "y" if layer.total is None else "part"
    into = "sums" if layer.end.is_sum and layer.result == "int8" else result
    pitch = layer.pitch if into == "y" else layer.channels
    for name, first, start, end in calls:
        arguments = f"{start}, {into}{plus(first)}, {data[1]}, {pitch * layer.end.size}, {end}"
        lines.add(f"{name}({data[0]}, {arguments});")
    if into == "sums":
        with lines.repeat("row", rows):
            place = f"[row * {layer.channels} + c]" if rows > 1 else "[c]"
            to = f"[row * {layer.pitch} + c]" if rows > 1 and result == "y" else place
            with lines.loop("c", layer.channels):
                lines.add(*layer.ending.loads("c"))
                lines.add(f"{result}{to} = (int8_t)({layer.ending.result(f'sums{place}')});")
    if layer.total is not None:
        other = "other + (y - result)"
        operands = (other, "part") if layer.place else ("part", other)
        lines.add(layer.total.call(operands, "y", rows * layer.channels))
