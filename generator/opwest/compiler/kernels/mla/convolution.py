# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products of int8 values with two products in one multiplication (`pairs`)."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import folded, plain_weights
from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, c_type, emits
from opwest.compiler.emission.matrix import bound_of
from opwest.compiler.ir.operations import Clamp, Convolution, ConvolutionSum, Finish, Sums
from opwest.compiler.kernels.mla.assembly import NAKED, Epilogue, epilogue_of, numbers_of
from opwest.compiler.kernels.mla.elements import SumLoop, sum_loop
from opwest.compiler.kernels.mla.pairs import Tile, pack, padding, stream, unrolling, way_of
from opwest.compiler.kernels.mla.windows import Windows
from opwest.compiler.kernels.scaling import Scaling, scaling_of
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding


def scaling_with_constants(finish: Finish, weights: Any, bias: Any, bounds: Any) -> Scaling | None:
    """Return the numbers of a layer, or None: weights int8 [channels, length], the bias with the data's zero point."""
    found = scaling_of(finish, bounds)
    if found or not isinstance(finish, Requantisation) or finish.rounding not in (Rounding.TWICE, Rounding.ONCE):
        return found
    channels = len(weights)
    given = finish.multipliers if len(finish.multipliers) == channels else finish.multipliers * channels
    finish = dataclasses.replace(finish, multipliers=given)
    bounds = np.asarray(bounds, np.int64)
    whole = weights.astype(np.int64)
    start = np.zeros(channels, np.int64) if bias is None else np.asarray(bias, np.int64)
    ends = np.stack([np.minimum(-128 * whole, 127 * whole), np.maximum(-128 * whole, 127 * whole)]).sum(axis=2) + start
    least, greatest = finish.apply(ends)
    # Results increase with sums, as long as a shift to the left does not overflow.
    lefts = np.asarray([max(one.shift, 0) for one in given])
    is_constant = (least == greatest) & (np.abs(ends).max(axis=0) << lefts < 1 << 31)
    reduced = tuple(
        Multiplier(0, 0) if constant else one for one, constant in zip(given, is_constant.tolist(), strict=True)
    )
    found = scaling_of(dataclasses.replace(finish, multipliers=reduced), np.where(is_constant, 0, bounds))
    if found is None:
        return None
    addends = np.where(is_constant, 2 * least, found.addends).astype(np.int32)
    return Scaling(found.multipliers, addends, found.shifts, found.is_doubled, found.is_signed, found.low, found.high)


MAX_SCRATCH = 8192
"""Bytes of widened rows."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The numbers of a layer: the same for all variants of this class."""

    weights: Any
    """int8 [channels, length]."""
    bias: Any
    scaling: Scaling | None
    """None: sums are stored, and C computes the results."""
    end: Epilogue
    ending: LayerEpilogue | None
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
    data, result = operation.inputs[0], operation.results[0]
    weights = plain_weights(operation.weights, operation.weight_zero)
    if data.dtype != "int8" or weights.dtype != np.int8 or operation.groups != 1:
        return None
    if isinstance(operation.finish, Clamp) or (result.dtype != "int8" and not isinstance(operation.finish, Sums)):
        return None
    channels, kh, kw, inner = weights.shape
    flat = weights.reshape(channels, -1)
    bias = folded(weights, operation.bias, operation.zero, data.dtype)
    bound = bound_of(weights, bias, data.dtype)
    window = operation.window
    is_plain = (kh, kw) == window.stride == (1, 1) and window.before == (0, 0)
    is_plain = is_plain and data.size // inner == result.size // channels
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    scaling = (
        None if isinstance(operation.finish, Sums) else scaling_with_constants(operation.finish, flat, bias, bound)
    )
    last = ending(operation.finish, channels, bound, operation.zero) if scaling is None else None
    windows = Windows(window, shape, operation.zero)
    rows = result.size // channels
    is_sum = isinstance(operation, ConvolutionSum)
    total = sum_loop(operation.function) if isinstance(operation, ConvolutionSum) else None
    if is_sum and total is None:
        return None
    place = operation.place if isinstance(operation, ConvolutionSum) else 0
    pitch = result.pitch or channels
    end = epilogue_of(scaling)
    return Layer(flat, bias, scaling, end, last, windows, rows, is_plain, result.dtype, total, place, pitch)


@emits(ConvolutionSum, "mla-pairs")
@emits(Convolution, "mla-pairs", has_pitch=True)
def render(operation: Convolution) -> Call | None:
    """Return the call; None: other dtypes, groups, too much scratch memory."""
    layer = layer_of(operation)
    if layer is None:
        return None
    steps = -(-layer.length // 2)
    unrolled = unrolling(steps)
    steps = -(-steps // unrolled) * unrolled
    rows = next((some for some in (3, 2, 1) if some <= layer.rows and some * steps * 4 <= MAX_SCRATCH), 0)
    if not rows:
        return None
    divided = parts_of(layer.channels, rows)
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
    tiles = [Tile(some, wide, unrolled, rows, layer.end, way) for some in counts for _, wide, _ in parts]
    name, packing = pack(rows, way)
    text = _PairedFunction(layer, rows, steps, parts, unrolled, name, way).text()
    scratch = [Parameter("words", "int32", "scratch", elements=rows * steps)]
    windows = layer.windows
    if not layer.is_plain and windows.scratch:
        scratch.append(Parameter("edge", "int8", "scratch", elements=windows.scratch))
    small = [windows.small(rows, way)[1]] if not layer.is_plain and windows.is_small else []
    definitions = (NAKED, packing, *small, *dict.fromkeys(tile.text() for tile in tiles))
    return call_of(operation, layer, np.concatenate([ends, *words]), text, scratch, rows, definitions)


def _numbers(layer: Layer, chosen: slice, added: Any) -> Any:
    """Return the numbers of some channels, with an addition to their biases."""
    whole = np.zeros(layer.channels, np.int64)
    whole[chosen] = added
    bias = whole if layer.bias is None else layer.bias + whole
    return numbers_of(layer.scaling, bias, layer.channels)[chosen]


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
    arrays = layer.ending.arrays if layer.ending else ()
    if layer.end.is_sum and layer.result == "int8":
        scratch = [*scratch, Parameter("sums", "int32", "scratch", elements=rows * layer.channels)]
    total = layer.total
    if total is not None:
        scratch = [*scratch, Parameter("part", "int8", "scratch", elements=rows * layer.channels)]
        definitions = (*definitions, total.text)
    constants = [] if total is None else list(zip(total.names, total.arrays, strict=True))
    parameters = [
        Parameter("data", "int8"),
        Parameter("weights", str(weights.dtype)),
        *(Parameter(one, kind) for one, kind, _ in arrays),
        *(Parameter(name, str(array.dtype)) for name, array in constants),
        *([] if total is None else [Parameter("other", "int8")]),
        Parameter("result", layer.result, "out", (*(["data"] * can_replace), *(["other"] * (total is not None)))),
        *scratch,
    ]
    is_dense = layer.is_plain and operation.inputs[0].size == layer.rows * layer.length
    function = Function(
        "dense" if is_dense and layer.windows.data[1:3] == (1, 1) else "convolution",
        tuple(parameters),
        text,
        layer.ending.helpers if layer.ending else (),
        (*(layer.ending.headers if layer.ending else ()), "string.h"),
        definitions=definitions,
    )
    given = (*(one for _, _, one in arrays), *(array for _, array in constants), *operation.inputs[1:])
    return Call(function, (operation.inputs[0], weights, *given, operation.results[0]), operation.label)


def parts_of(channels: int, rows: int) -> list[tuple[int, int, int]]:
    """Return the parts of the channels: first, count, channels of a block."""
    wide = 2 if rows > 1 or (channels % 4 and channels % 2 == 0 and channels < 16) else 4
    found, first = [], 0
    while first < channels:
        count = (channels - first) // wide * wide
        if count:
            found.append((first, count, wide))
            first += count
        wide //= 2
    return found


@dataclass(frozen=True, eq=False)
class _PairedFunction:
    """The body of a convolution with two products for each multiplication."""

    layer: Layer
    rows: int
    steps: int
    parts: list[tuple[int, int, int]]
    """First channel, channels of a block, words."""
    unrolled: int
    pack: str
    way: str

    def text(self) -> str:
        """Return the body."""
        layer, lines = self.layer, Lines()
        if layer.ending:
            lines.add(*(line for line in layer.ending.prologue if " fill " not in line))
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
        lines.add("const int8_t *x = data;", "")
        if turns > 1:
            with lines.loop("row", turns):
                for row in range(self.rows):
                    lines.add(f"{self.pack}(words{_plus(row)}, x{_plus(row * length)}, {length});")
                lines.add(f"x += {self.rows * length};")
                self._tile(lines, self.rows, True)
        else:
            for row in range(self.rows):
                lines.add(f"{self.pack}(words{_plus(row)}, x{_plus(row * length)}, {length});")
            if rest:
                lines.add(f"x += {self.rows * length};")
            self._tile(lines, self.rows, bool(rest))
        for row in range(rest):
            lines.add(f"{self.pack}(words{_plus(row)}, x{_plus(row * length)}, {length});")
        if rest:
            self._tile(lines, rest, False)

    def _windows(self, lines: Lines) -> None:
        """Append the loops over windows: a tile is computed when its rows are complete."""
        layer, windows = self.layer, self.layer.windows
        batches, height, width, depth = windows.data
        lines.add("int filled = 0;", "")
        with lines.loop("n", batches):
            lines.add(f"const int8_t *image = data + n * {height * width * depth};", "")
            with lines.loop("oy", windows.window.result[0]), lines.loop("ox", windows.window.result[1]):
                with lines.block(""):
                    if windows.is_small:
                        windows.add_small(lines, "words + filled", self.pack, windows.small(self.rows, self.way)[0])
                    elif windows.is_direct:
                        windows.add_direct(
                            lines, "words + filled", self.pack, self.rows, padding(layer.windows.zero, self.way)
                        )
                    else:
                        windows.add_bytes(lines, "edge")
                        lines.add(f"{self.pack}(words + filled, edge, {layer.length});")
                with lines.block(f"if (++filled < {self.rows})"):
                    lines.add("continue;")
                lines.add("filled = 0;")
                self._tile(lines, self.rows, True)
        rest = layer.rows % self.rows
        if rest:
            self._tile(lines, rest, False)

    def _tile(self, lines: Lines, rows: int, advances: bool) -> None:
        """Append the calls for a tile."""
        names = [Tile(rows, wide, self.unrolled, self.rows, self.layer.end, self.way).name for _, wide, _ in self.parts]
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
        arguments = f"{start}, {into}{_plus(first)}, {data[1]}, {pitch * layer.end.size}, {end}"
        lines.add(f"{name}({data[0]}, {arguments});")
    if into == "sums" and layer.ending:
        with lines.loop("row", rows) if rows > 1 else nullcontext():
            place = f"[row * {layer.channels} + c]" if rows > 1 else "[c]"
            to = f"[row * {layer.pitch} + c]" if rows > 1 and result == "y" else place
            with lines.loop("c", layer.channels):
                lines.add(*layer.ending.loads("c"))
                lines.add(f"{result}{to} = (int8_t)({layer.ending.result(f'sums{place}')});")
    if layer.total is not None:
        other = "other + (y - result)"
        operands = (other, "part") if layer.place else ("part", other)
        lines.add(layer.total.call(operands, "y", rows * layer.channels))


def _plus(offset: int) -> str:
    return f" + {offset}" if offset else ""
