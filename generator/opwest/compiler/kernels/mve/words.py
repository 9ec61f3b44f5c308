# SPDX-License-Identifier: Apache-2.0
"""Rows under depthwise windows as words: each word has the elements of one channel under some taps of a window.

Rows of the data are copied to a ring, with their padding. For a row of results, the stores that interleave vectors make
planes of words from rows of the ring: a word for each column and channel. A gather of 4 words is a vector of taps.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.function import Lines
from opwest.compiler.graph.types import Shape
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.semantics.windows import Window, row_of

WORD = 4
"""The bytes of a word."""
LANES = 4
"""The words of a vector."""
VECTOR = 16
SCRATCH = 6144
"""The bytes of scratch memory, unless LEAST columns of 16 bytes of channels need more."""
FARTHEST = 508
"""The greatest offset of a gather."""
LEAST = 8
"""The fewest columns of a part of a row."""
MOST = 7
"""The vectors of a column whose offsets fit in a load."""


@dataclass(frozen=True)
class Plane:
    """The words of some rows of a window."""

    row: int
    """The first of them."""
    down: int
    """The rows of taps of a word; those below the window have weights of 0."""
    over: int
    """The columns of taps of a word."""
    columns: int
    """Of the window that have words."""

    @property
    def uses(self) -> int:
        """The words under a window."""
        return -(-self.columns // self.over)

    def taps(self) -> Iterator[tuple[int, int]]:
        """Yield the row of the window and the column of each tap of a word."""
        for tap in range(self.down * self.over):
            yield self.row + tap // self.over, tap % self.over


def vectors_of(planes: Sequence[Plane]) -> int:
    """Return the vectors of taps of a window."""
    return -(-sum(plane.uses for plane in planes) // LANES)


@dataclass(frozen=True)
class Words:
    """The words of a layer for a block of channels of the result."""

    data: Shape
    window: Window
    results: int
    item: int
    """The bytes of an element."""
    channels: int
    """The channels of a block; the last block can have fewer ones."""
    part: int
    """The columns of results that are computed before those to the right of them; the last part overlaps."""
    is_direct: bool = False
    """Whether the words are made from rows of the data, and the ring is one row of padding."""

    @property
    def taps(self) -> int:
        """The elements of a word."""
        return WORD // self.item

    @functools.cached_property
    def planes(self) -> tuple[Plane, ...]:
        """The planes of a row of results: those with the fewest vectors, then the fewest planes."""
        kh, kw = self.window.size
        best: list[tuple[Plane, ...]] = [()]
        for row in range(kh):
            # The planes for the rows of the window from `kh - 1 - row` on.
            first = kh - 1 - row
            forms = [down for down in (4, 2, 1) if down <= self.taps]
            options = [
                (Plane(first, down, self.taps // down, kw), *best[max(0, row + 1 - down)]) for down in forms
            ]  # fmt: skip
            best.append(min(options, key=lambda planes: (sum(plane.uses for plane in planes), len(planes))))
        # Planes of one form are fewer, and need no columns behind the last window.
        tall = tuple(Plane(first, self.taps, 1, kw) for first in range(0, kh, self.taps))
        short = (*best[kh][:-1], replace(best[kh][-1], columns=kw - 1))
        found = min((tall, best[kh], short if self.can_be_short else tall), key=vectors_of)
        return tall if vectors_of(found) == vectors_of(tall) else found

    @property
    def can_be_short(self) -> bool:
        """Whether the words of int16 elements can leave out the last tap of a window of odd sizes."""
        (kh, kw), is_wide = self.window.size, self.item == 2
        return is_wide and kh % 2 == 1 and kw % 2 == 1 and kw > 1 and not self.is_flat

    @property
    def is_short(self) -> bool:
        """Whether the last tap of a window is not in a word: its product is added to the sums of the others."""
        return self.planes[-1].columns < self.window.size[1]

    @property
    def vectors(self) -> int:
        """The vectors of taps of a window."""
        return vectors_of(self.planes)

    @property
    def column(self) -> int:
        """The bytes of a column of the ring."""
        return self.channels * self.item

    @property
    def columns(self) -> int:
        """The columns of a row of the ring: those under windows, and under taps whose weights are 0."""
        taps = max(plane.uses * plane.over for plane in self.planes)
        reach = (max(taps, self.window.size[1]) - 1) * self.window.dilation[1] + 1
        return (self.part - 1) * self.window.stride[1] + reach

    @property
    def pitch(self) -> int:
        """The bytes of a row of the ring."""
        return self.columns * self.column

    @property
    def rows(self) -> int:
        """The rows of the ring."""
        return self.window.reach(0)

    @property
    def ring(self) -> int:
        """The bytes of the ring; loads of whole vectors read behind the last row."""
        size = self.rows * self.pitch + VECTOR
        if self.is_direct:
            size = self.inside * self.column if self.has_gap else 0
        return -(-size // WORD) * WORD

    @property
    def has_gap(self) -> bool:
        """Whether windows reach outside of the image by rows."""
        return self.window.pads((self.data[1], self.data[2]))[0]

    @property
    def inside(self) -> int:
        """The columns of the data in a row without parts."""
        return row_of(self.window.before[1], self.data[2], self.columns)[1]

    def count(self, plane: Plane) -> int:
        """Return the vectors of a row that become words; without a ring, another one can overlap the last one."""
        if self.is_direct:
            return self.inside * self.column // VECTOR
        last = (plane.over - 1) * self.window.dilation[1]
        return -(-(self.columns - last) * self.column // VECTOR)

    @property
    def rest(self) -> int:
        """The bytes of the last vector that are not in another one; 0: none."""
        return self.inside * self.column % VECTOR if self.is_direct else 0

    @property
    def plane(self) -> int:
        """The bytes of a plane."""
        if self.is_direct:
            return self.pitch * self.taps
        return max(map(self.count, self.planes)) * VECTOR * self.taps

    @property
    def is_flat(self) -> bool:
        """Whether the lanes of a vector are neighbouring results: one channel, or two with a stride of 1.

        The two halves of a row, which overlap in the middle of an odd number of results, are taken for two results.
        """
        half, stride = -(-self.part // 2), self.window.stride[1]
        is_regular = self.results == 1 or (self.results == 2 and stride == 1)
        far = ((self.part - half) * self.results + 3) * stride * WORD
        return is_regular and self.data[3] == self.results and self.parts == 1 and far <= FARTHEST

    @property
    def run(self) -> int:
        """The results that a call of the kernel takes for the channels of one result."""
        return -(-self.part // 2) * self.results if self.is_flat else self.channels

    @property
    def lane(self) -> int:
        """The bytes of words from a lane of results to the next one."""
        return self.window.stride[1] * WORD if self.is_flat else WORD

    @property
    def pixel(self) -> int:
        """The bytes of words from a result to the next one in its row."""
        moved = self.part // 2 if self.is_flat else 1
        return moved * self.window.stride[1] * self.channels * WORD

    @property
    def scratch(self) -> int:
        """The bytes of scratch memory: windows behind the last one of a row are read, but not used."""
        return self.ring + len(self.planes) * self.plane + self.pixel + LANES * self.lane

    @property
    def multiplier(self) -> int:
        """The results of a channel of the data."""
        return self.results // self.data[3]

    @property
    def is_joined(self) -> bool:
        """Whether the columns of a row of the data follow each other in the ring."""
        return self.channels == self.data[3] == self.results

    @property
    def starts(self) -> list[int]:
        """The first channel of each block."""
        return list(range(0, self.results, self.channels))

    @property
    def parts(self) -> int:
        """The number of parts of a row of results."""
        return -(-self.window.result[1] // self.part)

    @property
    def has_data(self) -> bool:
        """Whether the columns of each part reach those of the data."""
        width, (_, left) = self.data[2], self.window.before
        if self.parts == 1:
            return self.inside > 0
        last = (self.window.result[1] - 1) * self.window.stride[1]
        return left < self.window.reach(1) and last - left < width

    def places(self) -> list[tuple[int, int]]:
        """Return the plane and the column of each word of a window."""
        over = self.window.dilation[1]
        return [
            (number, use * plane.over * over) for number, plane in enumerate(self.planes) for use in range(plane.uses)
        ]

    def offsets(self) -> list[int]:
        """Return the bytes from the first word of a window to each lane of its vectors."""
        found = [plane * self.plane + column * self.channels * WORD for plane, column in self.places()]
        return found + [0] * (self.vectors * LANES - len(found))


def words_of(data: Shape, window: Window, results: int, item: int) -> Words | None:
    """Return the words of a layer with as few blocks of channels as possible; None for large strides.

    Rows are divided into parts only where a block of 16 bytes of channels does not fit in the scratch memory.
    """
    step = VECTOR // item
    most = min(((FARTHEST // WORD - 3) // window.stride[1]) // step, MOST)
    if most < 1:
        return None

    def words(channels: int, part: int = window.result[1]) -> Words:
        made = Words(data, window, results, item, min(channels, results), part)
        return replace(made, is_direct=True) if _can_be_direct(made) else made

    if results <= most * step and words(results).scratch <= SCRATCH:
        return words(results)
    fitting = [count for count in range(1, most + 1) if words(count * step).scratch <= SCRATCH]
    if fitting:
        blocks = -(-results // (step * max(fitting)))
        return words(-(-results // (blocks * step)) * step)
    parts = range(min(LEAST, window.result[1]), window.result[1] + 1)
    sizes = [part for part in parts if words(step, part).scratch <= SCRATCH] or [parts[0]]
    count = -(-window.result[1] // max(sizes))
    return words(step, -(-window.result[1] // count))


def _can_be_direct(words: Words) -> bool:
    """Whether words can be made from rows of the data, also where the result replaces the data."""
    window, width = words.window, words.data[2]
    (rows, columns), (stride, _), (top, _) = window.result, window.stride, window.before
    if (
        words.parts > 1
        or not words.is_joined
        or any(plane.over > 1 for plane in words.planes)
        or words.inside * words.column < VECTOR
    ):
        return False
    if not can_replace(words.data, window, words.results):
        return True
    # The results of a row do not reach the first row of the data under the next windows.
    return all(y * columns <= max(0, y * stride - top) * width for y in range(1, rows))


def columns_function(words: Words, channels: int) -> tuple[str, str]:
    """Return the name and the definition of void f(to, from, count, places): columns of some channels.

    `places`: the channel of the data of each channel of the result, from that of `from`, if a channel has several.
    """
    size, step = channels * words.item, words.data[3] * words.item
    is_spread = words.multiplier > 1
    whole, rest = divmod(size, VECTOR)
    code = Assembly()
    code.add("push {r4, lr}")
    if rest:
        code.add(f"movs r4, #{rest}", "vctp.8 r4")
    code.add("dls lr, r2", "2:")
    kind = "vldrb{}.u8" if words.item == 1 else "vldrh{}.u16"
    for vector in range(whole + (rest > 0)):
        condition = "t" if vector == whole else ""
        load = f"vldrb{condition}.u8 q0, [r1, #{VECTOR * vector}]"
        if is_spread:
            code.add(f"vldrb.8 q1, [r3, #{VECTOR * vector}]")
            load = f"{kind.format(condition)} q0, [r1, q1{', uxtw #1' if words.item == 2 else ''}]"
        if condition:
            code.add("vpstt")
        code.add(load, f"vstrb{condition}.8 q0, [r0, #{VECTOR * vector}]")
    code.plus("r0", words.column, "r4")
    code.plus("r1", step, "r4")
    code.add("le lr, 2b", "pop {r4, pc}")
    name = f"mve_columns_{size}_of_{step}_to_{words.column}{'_spread' if is_spread else ''}_{8 * words.item}"
    parameters = ["int8_t *to", "const int8_t *from", "int count", *(["const int8_t *places"] if is_spread else [])]
    return name, code.function(name, parameters, f"Copies of {size} bytes of columns of {step} bytes.")


def words_function(item: int, rest: int) -> tuple[str, str]:
    """Return the name and the definition of void f(to, rows..., count): vectors of rows that are interleaved.

    `rest`: the bytes behind them, 0 or those of a vector that overlaps the last one.
    """
    taps = WORD // item
    code = Assembly()
    rows = ("r1", "r2", "r3", "r4")[:taps]
    if taps == 4:
        code.add("push {r4, lr}", "ldrd r4, r12, [sp, #8]")
    else:
        code.add("push {r4, lr}", "mov r12, r3")
    vectors = "{" + ", ".join(f"q{number}" for number in range(taps)) + "}"
    stores = [f"vst{taps}{part}.{8 * item} {vectors}, [r0]" for part in range(taps)]
    turn = [f"vldrb.8 q{number}, [{row}], #16" for number, row in enumerate(rows)]
    turn += [*stores[:-1], f"{stores[-1]}!"]
    code.add("dls lr, r12", "2:", *turn, "le lr, 2b")
    if rest:
        code.add(*(f"subs {row}, #{VECTOR - rest}" for row in rows), f"subs r0, #{(VECTOR - rest) * taps}", *turn)
    code.add("pop {r4, pc}")
    name = f"mve_words_of_{taps}{f'_rest_{rest}' if rest else ''}"
    parameters = ["int8_t *to", *(f"const int8_t *row{number}" for number in range(taps)), "int count"]
    return name, code.function(name, parameters, f"A word of {taps} elements for each element of {taps} rows.")


def add_row(lines: Lines, words: Words, names: list[str]) -> None:
    """Append the copy of the row `next`, counted from the first row of the padding, from `image` to the ring.

    `names`: the functions for the columns of all blocks but the last one, and of the last one.
    """
    _, height, width, depth = words.data
    top, left = words.window.before
    first, inside, _ = row_of(left, width, words.columns)
    lines.add(f"int8_t *to = ring + next % {words.rows} * {words.pitch};", "")
    shift, count, size = (f" + {first * words.column}" if first else ""), str(inside), str(inside * words.column)
    row = f"{'(next - ' + str(top) + ')' if top else 'next'} * {width * depth * words.item}"
    if words.parts > 1:
        shift, count, size = f" + before * {words.column}", "inside", f"inside * {words.column}"
        row = f"{row} + first * {depth * words.item}"
    if words.window.pads((height, width))[0]:
        with lines.block(f"if (next < {top} || next >= {top + height})"):
            lines.add(f"mve_fill(to, fill, {words.pitch});", "continue;")
    source, target = f"image + {row}", f"to{shift}"
    if words.is_joined:
        lines.add(f"mve_copy({target}, {source}, {size});")
        return
    places = ""
    if words.multiplier > 1:
        places = ", places"
        if len(words.starts) > 1:
            places = f", places + block * {words.column}"
    calls = [f"{name}({target}, {source}, {count}{places});" for name in names]
    if calls[0] == calls[-1]:
        lines.add(calls[0])
        return
    with lines.block(f"if (block < {len(words.starts) - 1})"):
        lines.add(calls[0])
    with lines.block("else"):
        lines.add(calls[-1])


def add_part(lines: Lines, words: Words) -> None:
    """Append the columns of a part: `x` is the first one of the results, `before` the columns of the padding."""
    columns, width, left = words.window.result[1], words.data[2], words.window.before[1]
    last = columns - words.part
    lines.add(f"const int x = part < {words.parts - 1} ? part * {words.part} : {last};")
    lines.add(f"const int start = x * {words.window.stride[1]} - {left};")
    lines.add("const int before = start < 0 ? -start : 0, first = start + before;")
    lines.add(f"const int after = {words.columns} - before, room = {width} - first;")
    lines.add("const int inside = after < room ? after : room;")


def add_planes(lines: Lines, words: Words, name: str) -> None:
    """Append the planes of words for the row of results `oy`."""
    (kh, _), (stride, _), (dy, dx) = words.window.size, words.window.stride, words.window.dilation
    (_, height, width, _), (top, left) = words.data, words.window.before
    used = sorted({min(row, kh - 1) for plane in words.planes for row, _ in plane.taps()})
    for row in used:
        if words.is_direct:
            at = f"oy * {stride} + {row * dy - top}" if row * dy >= top else f"oy * {stride} - {top - row * dy}"
            place = f"image + ({at}) * {width * words.column}"
            if words.has_gap:
                place = f"(unsigned int)({at}) < {height} ? {place} : ring"
            lines.add(f"const int8_t *r{row} = {place};")
            continue
        lines.add(f"const int8_t *r{row} = ring + (oy * {stride} + {row * dy}) % {words.rows} * {words.pitch};")
    for number, plane in enumerate(words.planes):
        rows = [
            f"r{min(row, kh - 1)}" + (f" + {column * dx * words.column}" if column else "")
            for row, column in plane.taps()
        ]
        first = number * words.plane + (left * words.column * words.taps if words.is_direct else 0)
        to = f"words + {first}" if first else "words"
        lines.add(f"{name}({to}, {', '.join(rows)}, {words.count(plane)});")
