# SPDX-License-Identifier: Apache-2.0
"""int8 depthwise convolutions with small windows: tiles of 4 x 4 elements of a channel, each one vector.

Rows of the image are copied to scratch memory as windows of 4 columns: a word for each channel, by the stores that
interleave 4 vectors. A gather of 4 words is a tile. With a stride of 1, a tile has 2 x 2 results, whose weights are
shifted copies of one vector; otherwise it has one, and 4 tiles make a vector of results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import COPY, FILL, NUMBERS, Assembly, Epilogue, epilogue_of
from opwest.compiler.kernels.scaling import int8_sums
from opwest.compiler.semantics.windows import Window

SIDE = 4
"""The rows and columns of a tile."""
SAVED = 40
"""Bytes of the stack: gather addresses, result, rows, channels left, rows left, mask."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of a layer."""

    window: Window
    data: Shape

    @property
    def is_square(self) -> bool:
        """Whether a tile has 2 x 2 results."""
        return self.window.stride == (1, 1) and max(self.window.size) < SIDE

    @property
    def down(self) -> int:
        """The rows of results of a tile."""
        return 2 if self.is_square else 1

    @property
    def reach(self) -> int:
        """The rows of the image of a row of tiles."""
        return SIDE - 1 if self.is_square else self.window.size[0]

    @property
    def channels(self) -> int:
        """The channels of a block."""
        return min(16, self.data[3])

    @property
    def turns(self) -> int:
        """The vectors of results of a row of tiles."""
        return -(-self.window.result[1] // (2 if self.is_square else 4))

    @property
    def count(self) -> int:
        """The windows of a row."""
        return self.turns if self.is_square else self.turns * 4

    @property
    def step(self) -> int:
        """The columns of the image from a window to the next one."""
        return 2 if self.is_square else self.window.stride[1]

    @property
    def row(self) -> int:
        """The bytes of the windows of a row."""
        return self.count * 4 * self.channels

    def held(self, height: int) -> int:
        """Return the rows in scratch memory for some rows of results."""
        return (-(-height // self.down) - 1) * self.window.stride[0] * self.down + SIDE

    def block_words(self, ending: Epilogue) -> int:
        """Return the int32 numbers of a block of channels."""
        return 4 + self.channels * (8 if ending.has_left else 7)

    @property
    def name(self) -> str:
        """The part of names that stands for the shape."""
        (kh, kw), (sy, sx), (_, columns) = self.window.size, self.window.stride, self.window.result
        return f"{kh}x{kw}_s{sy}x{sx}_w{columns}_c{self.data[3]}"


def row_function(tiles: Tiles) -> tuple[str, str]:
    """Return the name and the definition of void f(to, from, fill): the windows of a row of the image."""
    _, _, width, depth = tiles.data
    left = tiles.window.before[1]
    columns = tiles.window.result[1]
    used = (columns + 1) // 2 if tiles.is_square else columns
    code = Assembly()
    code.add("push {r4, lr}", "vpush {d8-d9}", "vdup.8 q4, r2")
    if depth < 16:
        code.add(f"movs r3, #{depth}", "vctp.8 r3")
    places = [number * tiles.step - left for number in range(used)]
    whole = [number for number, x in enumerate(places) if x >= 0 and x + SIDE <= width]
    number, at = 0, 0
    while number < used:
        x = places[number]
        if number in whole and len(whole) > 1:
            code.plus("r1", x * depth - at, "r3")
            code.constant("r3", len(whole))
            code.add("dls lr, r3", "2:")
            _window(code, tiles, list(range(SIDE)), 0)
            code.plus("r1", tiles.step * depth, "r3")
            code.add("le lr, 2b")
            at = (x + len(whole) * tiles.step) * depth
            number += len(whole)
            continue
        # Columns outside of the image are the fill.
        inside = [column for column in range(SIDE) if 0 <= x + column < width]
        if inside:
            code.plus("r1", (x + inside[0]) * depth - at, "r3")
            at = (x + inside[0]) * depth
        _window(code, tiles, inside, inside[0] if inside else 0)
        number += 1
    code.add("vpop {d8-d9}", "pop {r4, pc}")
    name = f"mve_row_{tiles.name}_x{width}_{left}"
    parameters = ["int8_t *to", "const int8_t *from", "int fill"]
    return name, code.function(name, parameters, "A row of an image as windows of 4 columns: a word for each channel.")


def _window(code: Assembly, tiles: Tiles, inside: list[int], first: int) -> None:
    """Append the store of one window; r1 is the address of the column `first`."""
    depth = tiles.data[3]
    for column in range(SIDE):
        if column not in inside:
            code.add(f"vmov q{column}, q4")
    loads: list[tuple[int, str]] = []
    for column in inside:
        offset = (column - first) * depth
        if offset <= 127 or (column - first == 1 and 3 in inside and depth <= 127):
            loads.append((column, f"[r1, #{offset}]"))
        elif column - first == 3 and 2 * depth > 127 and depth <= 127:
            # r3 is two columns to the right, for the load before.
            loads.append((column, f"[r3, #{depth}]"))
        else:
            code.add(*([f"add r3, r1, #{offset}"] if offset <= 4095 else [f"movw r3, #{offset}", "add r3, r1"]))
            loads.append((column, "[r3]"))
        plain, place = f"vldrb.8 q{column}, ", loads[-1][1]
        code.add(*(["vpst", f"vldrbt.u8 q{column}, {place}"] if depth < 16 else [plain + place]))
    code.add(*(f"vst4{part}.8 {{q0, q1, q2, q3}}, [r0]" for part in range(3)))
    if tiles.channels == 16:
        code.add("vst43.8 {q0, q1, q2, q3}, [r0]!")
    else:
        code.add("vst43.8 {q0, q1, q2, q3}, [r0]", f"adds r0, #{4 * tiles.channels}")


def channels_function(tiles: Tiles, ending: Epilogue) -> tuple[str, str]:
    """Return the name and the definition of void f(windows, numbers, result, rows): results of a block of channels."""
    depth, columns, channels = tiles.data[3], tiles.window.result[1], tiles.channels
    width = 2 if tiles.is_square else 4
    whole, rest = divmod(columns, width)
    code = Assembly()
    code.add("push {r4-r11, lr}", "vpush {d8-d15}", f"sub sp, #{SAVED}", "strd r2, r3, [sp, #16]", "ldr r11, [r1]")
    if ending.has_clamp:
        code.add("ldr r8, [r1, #4]", "ldr r10, [r1, #8]")
    code.add("add r5, r1, #16")
    # The gather adds the distance of two windows before each load.
    code.plus("r0", -4 * channels)
    for register, base in (("r2", "r0"), ("r4", "r2"), ("r6", "r4")):
        code.constant(register, tiles.row)
        code.add(f"add {register}, {base}")
    code.add("vmov q4[2], q4[0], r0, r4", "vmov q4[3], q4[1], r2, r6", "vstrw.32 q4, [sp]")
    offsets = (
        (0, depth, columns * depth, (columns + 1) * depth) if tiles.is_square else [depth * row for row in range(4)]
    )
    for register, offset in zip(("r0", "r2", "r4", "r6"), offsets, strict=True):
        code.constant(register, offset)
    code.add(
        "vmov q5[2], q5[0], r0, r4", "vmov q5[3], q5[1], r2, r6", f"movs r0, #{channels}", "str r0, [sp, #24]", "2:"
    )
    code.add("vldrw.32 q0, [r5], #16", "ldrd r1, r3, [r5], #8", "ldr r9, [r5], #4")
    if ending.has_left:
        code.add("ldr r12, [r5], #4")
    if tiles.is_square:
        # The same weights one column to the right, one row down, both.
        code.add("movs r0, #0", "vshl.i32 q1, q0, #8", "vmov q2, q0", "vshlc q2, r0, #32", "vshl.i32 q3, q2, #8")
    code.add("vldrw.32 q4, [sp]", "movs r0, #4", "vadd.i32 q6, q4, r0", "vstrw.32 q6, [sp]")
    code.add("ldrd r7, r0, [sp, #16]", "adds r2, r7, #1", "str r2, [sp, #16]", "str r0, [sp, #28]", "3:")
    code.add("movw r2, #65535")
    if tiles.is_square:
        code.add("cmp r0, #1", "it eq", "moveq r2, #255")
    code.add("vmsr p0, r2")
    if rest and tiles.is_square:
        code.add("str r2, [sp, #32]")
    if whole:
        code.constant("r0", whole)
        code.add("dls lr, r0", "4:")
        _turn(code, tiles, ending)
        code.plus("r7", width * depth)
        code.add("le lr, 4b")
    if rest:
        code.add("movw r2, #3855" if tiles.is_square else f"movw r2, #{(1 << (4 * rest)) - 1}")
        code.add(*(["ldr r0, [sp, #32]", "ands r2, r0"] if tiles.is_square else []), "vmsr p0, r2")
        _turn(code, tiles, ending)
    code.plus("r7", (columns * tiles.down - whole * width) * depth)
    code.constant("r0", (tiles.row * tiles.down * tiles.window.stride[0] - tiles.row) & 0xFFFFFFFF)
    code.add("vadd.i32 q4, q4, r0", "ldr r0, [sp, #28]", f"subs r0, #{tiles.down}", "str r0, [sp, #28]", "bgt 3b")
    code.add("ldr r0, [sp, #24]", "subs r0, #1", "str r0, [sp, #24]", "bne 2b")
    code.add(f"add sp, #{SAVED}", "vpop {d8-d15}", "pop {r4-r11, pc}")
    name = f"mve_tiles_{tiles.name}_{ending.name}"
    parameters = ["const int8_t *windows", "const int32_t *numbers", "int8_t *result", "int rows"]
    return name, code.function(name, parameters, "Results of some channels, 4 at a time.")


def _turn(code: Assembly, tiles: Tiles, ending: Epilogue) -> None:
    """Append the 4 results of a turn; the predicate tells which are stored."""
    gather = f"[q4, #{4 * tiles.channels}]!"
    if tiles.is_square:
        code.add(f"vldrw.u32 q6, {gather}", *(f"vmladav.s8 r{2 * row}, q6, q{row}" for row in range(4)))
    else:
        data = ("q1", "q2", "q3", "q6")
        code.add(*(f"vldrw.u32 {q}, {gather}" for q in data))
        code.add(*(f"vmladav.s8 r{2 * row}, {q}, q0" for row, q in enumerate(data)))
    code.add("vmov q6[2], q6[0], r0, r4", "vmov q6[3], q6[1], r2, r6", "vadd.i32 q6, q6, r1")
    if ending.has_left:
        code.add("vshl.s32 q6, r12")
    code.add("vqrdmulh.s32 q6, q6, r3")
    if ending.fix:
        code.add("vshr.s32 q7, q6, #31", "vadd.i32 q6, q6, q7")
    code.add("vrshl.s32 q6, r9", "vqmovnb.s32 q6, q6", "vqadd.s16 q6, q6, r11", "vqmovnb.s16 q6, q6")
    if ending.has_clamp:
        code.add("vdup.8 q7, r8", "vmax.s8 q6, q6, q7", "vdup.8 q7, r10", "vmin.s8 q6, q6, q7")
    code.add("vpst", "vstrbt.32 q6, [r7, q5]")


WINDOWS = 6144
"""The bytes of scratch memory for windows, unless one row of tiles needs more."""


@emits(Depthwise, "mve-tiles")
def render(operation: Depthwise) -> Call | None:
    """Return the call; None for large or dilated windows, several results of a channel, and ends that differ."""
    data, result = operation.inputs[0], operation.results[0]
    given = int8_sums(operation)
    kh, kw, channels = operation.weights.shape
    if given is None or result.dtype != "int8" or channels != data.shape[3]:
        return None
    weights, bias, bounds = given
    window = operation.window
    if max(kh, kw) > SIDE or window.dilation != (1, 1) or window.stride[0] > SIDE or channels > 1000:
        return None
    ending = epilogue_of(operation.finish, channels, bounds)
    if ending is None or not ending.is_doubled or ending.fix == "masked":
        return None
    tiles = Tiles(window, data.shape)
    height = _strip(tiles)
    lines = Lines()
    (row_name, row_text), (name, text) = row_function(tiles), channels_function(tiles, ending)
    _body(lines, tiles, (row_name, name), height, tiles.block_words(ending))
    rows = tiles.held(height)
    is_in_place = can_replace(data.shape, window, channels) and (channels <= 16 or channels % 16 == 0)
    arguments = {"data": data, "numbers": _packed(weights.reshape(channels, kh, kw), bias, ending, operation.zero)}
    # A store of a window writes 64 bytes, of which those of missing channels are overwritten.
    scratch = [Parameter("windows", "int32", "scratch", elements=(rows * tiles.row + 64) // 4)]
    in_place = ("data",) if is_in_place else ()
    definitions = (NAKED, FILL, *((COPY,) if "mve_copy" in str(lines) else ()), row_text, text)
    return call_for(operation, "depthwise", lines, arguments, in_place, scratch, definitions=definitions)


def _strip(tiles: Tiles) -> int:
    """Return the rows of results that are computed before further rows are copied."""
    step, height = tiles.down, tiles.down
    while height < tiles.window.result[0] and tiles.held(height + step) * tiles.row <= WINDOWS:
        height += step
    return height


def _packed(weights: Any, bias: Any, ending: Epilogue, fill: int) -> Any:
    """Return for each block of channels: numbers, then weights as 4 rows of 4, bias, multiplier, shifts of each."""
    channels, kh, kw = weights.shape
    wide = np.pad(weights, ((0, 0), (0, SIDE - kh), (0, SIDE - kw)))
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


def _body(lines: Lines, tiles: Tiles, names: tuple[str, str], strip: int, block_words: int) -> None:
    """Append the loops over images, blocks of channels, strips of rows."""
    images, height, width, depth = tiles.data
    (rows, columns), (stride, _), (top, _) = tiles.window.result, tiles.window.stride, tiles.window.before
    row_name, name = names
    first = starts(depth)
    lines.add(f"const int fill = numbers[{NUMBERS.index('fill')}];", "")
    every_image = lines.repeat("n", images)
    with every_image, lines.repeat("block", len(first)):
        start, number = "", "numbers"
        if len(first) > 1:
            last = f"block == {len(first) - 1} ? {first[-1]} : block * 16"
            lines.add(f"const int c = {'block * 16' if depth % 16 == 0 else last};")
            start, number = " + c", f"numbers + block * {block_words}"
        source = f"n * {height * width * depth}" if images > 1 else "0"
        target = f"n * {rows * columns * depth}" if images > 1 else "0"
        lines.add(f"const int8_t *x = data + {source}{start};", f"int8_t *y = result + {target}{start};")
        lines.add("int8_t *held = (int8_t *)windows;", "int kept = 0;", "")
        with lines.block(f"for (int y0 = 0; y0 < {rows}; y0 += {strip})"):
            lines.add(f"const int left = {rows} - y0;", f"const int count = left < {strip} ? left : {strip};")
            needed = f"(count - 1) * {stride} + {tiles.window.size[0]}"
            if tiles.is_square:
                needed = f"(count + 1) / 2 * 2 + {SIDE - 2}"
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
