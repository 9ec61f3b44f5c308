# SPDX-License-Identifier: Apache-2.0
"""int8 depthwise convolutions with small windows: tiles of 4 x 4 elements of a channel, each one vector.

Rows of the image are copied to scratch memory as windows of 4 columns: a word for each channel, by the stores that
interleave 4 vectors. A gather of 4 words is a tile. With a stride of 1, a tile has 2 x 2 results, whose weights are
shifted copies of one vector; otherwise it has one, and 4 tiles make a vector of results.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.importers.models.emit.convolution import folded, plain_weights
from opwest.importers.models.emit.depthwise import can_replace
from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.mve.assembly import COPY, FILL, NAKED
from opwest.importers.models.emit.kernels.mve.ending import NUMBERS, Ending, ending_of
from opwest.importers.models.emit.kernels.mve.tile_code import SIDE, Tiles, channels_function, row_function
from opwest.importers.models.emit.matrix import bound_of
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Depthwise

WINDOWS = 6144
"""The bytes of scratch memory for windows, unless one row of tiles needs more."""


@emits(Depthwise, "mve-tiles")
def render(operation: Depthwise) -> Call | None:
    """Return the call; None for large or dilated windows, several results of a channel, and ends that differ."""
    data, result = operation.inputs[0], operation.results[0]
    weights = plain_weights(operation.weights, operation.weight_zero)
    kh, kw, channels = weights.shape
    if (data.dtype, result.dtype, str(weights.dtype)) != ("int8", "int8", "int8") or channels != data.shape[3]:
        return None
    window = operation.window
    if max(kh, kw) > SIDE or window.dilation != (1, 1) or window.stride[0] > SIDE or channels > 1000:
        return None
    flat = weights.reshape(kh * kw, channels).T
    bias = folded(flat, operation.bias, operation.zero, "int8")
    ending = ending_of(operation.finish, channels, bound_of(flat, bias, "int8"))
    if ending is None or not ending.is_doubled or ending.fix == "masked":
        return None
    tiles = Tiles(window, data.shape)
    height = _strip(tiles)
    lines = Lines()
    (row_name, row_text), (name, text) = row_function(tiles), channels_function(tiles, ending)
    _body(lines, tiles, (row_name, name), height, tiles.record(ending))
    rows = tiles.held(height)
    is_in_place = can_replace(data.shape, window, channels) and (channels <= 16 or channels % 16 == 0)
    parameters = (
        Parameter("data", "int8"),
        Parameter("numbers", "int32"),
        Parameter("result", "int8", "out", ("data",) if is_in_place else ()),
        # A store of a window writes 64 bytes, of which those of missing channels are overwritten.
        Parameter("windows", "int32", "scratch", elements=(rows * tiles.row + 64) // 4),
    )
    definitions = (NAKED, FILL, *((COPY,) if "mve_copy" in str(lines) else ()), row_text, text)
    function = Function("depthwise", parameters, str(lines), definitions=definitions)
    return Call(function, (data, _packed(weights, bias, ending, operation.zero), result), operation.label)


def _strip(tiles: Tiles) -> int:
    """Return the rows of results that are computed before further rows are copied."""
    step, height = tiles.down, tiles.down
    while height < tiles.window.result[0] and tiles.held(height + step) * tiles.row <= WINDOWS:
        height += step
    return height


def _packed(weights: Any, bias: Any, ending: Ending, fill: int) -> Any:
    """Return for each block of channels: numbers, then weights as 4 rows of 4, bias, multiplier, shifts of each."""
    kh, kw, channels = weights.shape
    wide = np.zeros((channels, SIDE, SIDE), np.int8)
    wide[:, :kh, :kw] = np.moveaxis(weights, -1, 0)
    words = wide.reshape(channels, 16).view(np.int32)
    scalars = [bias, ending.multipliers, ending.rights, *([ending.lefts] if ending.has_left else [])]
    each = np.concatenate([words, np.stack(scalars, axis=1).astype(np.int32)], axis=1)
    parts = []
    for start in starts(channels):
        parts += [ending.numbers(fill), each[start : start + 16].reshape(-1)]
    return np.concatenate(parts)


def starts(channels: int) -> list[int]:
    """Return the first channel of each block; the last block has the last 16 channels."""
    return [0] if channels <= 16 else [*range(0, channels - 15, 16), *([channels - 16] if channels % 16 else [])]


def _body(lines: Lines, tiles: Tiles, names: tuple[str, str], strip: int, record: int) -> None:
    """Append the loops over images, blocks of channels, strips of rows."""
    images, height, width, depth = tiles.data
    (rows, columns), (stride, _), (top, _) = tiles.window.result, tiles.window.stride, tiles.window.before
    row_name, name = names
    first = starts(depth)
    lines.add(f"const int fill = numbers[{NUMBERS.index('fill')}];", "")
    every_image = lines.loop("n", images) if images > 1 else nullcontext()
    with every_image, lines.loop("block", len(first)) if len(first) > 1 else nullcontext():
        start, number = "", "numbers"
        if len(first) > 1:
            last = f"block == {len(first) - 1} ? {first[-1]} : block * 16"
            lines.add(f"const int c = {'block * 16' if depth % 16 == 0 else last};")
            start, number = " + c", f"numbers + block * {record}"
        source = f"n * {height * width * depth}" if images > 1 else "0"
        target = f"n * {rows * columns * depth}" if images > 1 else "0"
        lines.add(f"const int8_t *x = data + {source}{start};", f"int8_t *y = result + {target}{start};")
        lines.add("int8_t *held = (int8_t *)windows;", "int kept = 0;", "")
        with lines.block(f"for (int y0 = 0; y0 < {rows}; y0 += {strip})"):
            lines.add(f"const int left = {rows} - y0;", f"const int count = left < {strip} ? left : {strip};")
            needed = f"(count + 1) / 2 * 2 + {SIDE - 2}" if tiles.down == 2 else _needed(tiles)
            lines.add(f"const int needed = {needed};", "")
            with lines.block("for (int row = kept; row < needed; row++)"):
                lines.add(f"const int iy = y0 * {stride} - {top} + row;", f"int8_t *to = held + row * {tiles.row};")
                lines.add("")
                with lines.block(f"if (iy < 0 || iy >= {height})"):
                    lines.add(f"mve_fill(to, fill, {tiles.row});")
                with lines.block("else"):
                    lines.add(f"{row_name}(to, x + iy * {width * depth}, fill);")
            lines.add(f"{name}(held, {number}, y + y0 * {columns * depth}, count);")
            keep = max(0, tiles.reach - stride)
            if keep and strip < rows:
                # The rows that the next strip needs as well: their place in the image may have results by now.
                lines.add(f"mve_copy(held, held + {strip * stride * tiles.row}, {keep * tiles.row});")
                lines.add(f"kept = {keep};")


def _needed(tiles: Tiles) -> str:
    return f"(count - 1) * {tiles.window.stride[0]} + {tiles.window.size[0]}"
