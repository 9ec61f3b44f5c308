# SPDX-License-Identifier: Apache-2.0
"""Copies of int8 matrices at run time: pairs of channels as the stream of a tile, rows as its block of data.

The taps of both are in the order of `ORDER`, padded with zeros to a multiple of four.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.layers import ORDER

QUAD = len(ORDER)
"""The taps that are packed together."""


@dataclass(frozen=True)
class PairPacking:
    """A function that packs the taps of two channels, without the zero point, and starts the sums.

    The first sums are `factor` times the sums of the packed taps.
    """

    is_adjacent: bool
    """Whether the taps of a channel are adjacent; otherwise `distance` bytes apart."""
    has_zero: bool
    """Whether the zero point is not 0."""
    has_factor: bool
    """Whether the factor is not 0."""
    is_doubled: bool
    """Whether the taps are doubled."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        flags = (self.is_adjacent, self.has_zero, self.has_factor, self.is_doubled)
        words = ("rows", "zero", "factor", "doubled")
        parts = [word for word, has in zip(words, flags, strict=True) if has]
        return "_".join(["pack_pair", *parts])

    def definition(self) -> str:
        """Return the C function (to, first, second, numbers): `numbers` are distance, quads of taps, zero, factor.

        The zero point is in both halves of a word. `to` has two sums, then [2 * quad + word][channel] words.
        """
        parameters = ("int32_t *to", "const int8_t *first", "const int8_t *second", "const int32_t *numbers")
        return naked(self.name, parameters, self._lines())

    def _lines(self) -> Iterator[str]:
        yield "push {r4-r11, lr}"
        yield "ldm r3, {r3-r6}"  # distance, quads, zero, factor
        yield "push {r0, r6}"
        yield "movs r7, #0"
        yield "movs r8, #0"
        yield "mov lr, #0x10001"
        yield "adds r0, r0, #8"
        if not self.is_adjacent:
            yield "add r6, r3, r3, lsl #1"
        yield "1:"
        yield from self._adjacent() if self.is_adjacent else self._apart()
        yield "subs r4, r4, #1"
        yield "bne 1b"
        yield "pop {r0, r6}"
        if self.has_factor:
            yield "mul r7, r7, r6"
            yield "mul r8, r8, r6"
        yield "stm r0, {r7, r8}"
        yield "pop {r4-r11, pc}"

    def _adjacent(self) -> Iterator[str]:
        yield "ldr r11, [r1], #4"
        yield "ldr r12, [r2], #4"
        yield "sxtb16 r9, r11"
        yield "sxtb16 r11, r11, ror #8"
        yield "sxtb16 r10, r12"
        yield "sxtb16 r12, r12, ror #8"
        yield from self._numbers({"r9": "r7", "r11": "r7", "r10": "r8", "r12": "r8"})
        yield "stm r0!, {r9-r12}"

    def _apart(self) -> Iterator[str]:
        for source, total, place in (("r1", "r7", 0), ("r2", "r8", 4)):
            yield f"ldrsb r9, [{source}]"
            yield f"ldrsb r10, [{source}, r3, lsl #1]"
            yield f"ldrsb r11, [{source}, r3]"
            yield f"ldrsb r12, [{source}, r6]"
            yield f"add {source}, {source}, r3, lsl #2"
            yield "pkhbt r9, r9, r10, lsl #16"
            yield "pkhbt r11, r11, r12, lsl #16"
            yield from self._numbers({"r9": total, "r11": total})
            yield f"str r9, [r0, #{place}]"
            yield f"str r11, [r0, #{place + 8}]"
        yield "adds r0, r0, #16"

    def _numbers(self, words: dict[str, str]) -> Iterator[str]:
        """Yield the numbers of widened taps; `words`: by register, that of the sum."""
        for word in words if self.has_zero else ():
            yield f"ssub16 {word}, {word}, r5"
        for word in words if self.is_doubled else ():
            yield f"sadd16 {word}, {word}, {word}"
        for word, total in words.items() if self.has_factor else ():
            yield f"smlad {total}, {word}, lr, {total}"


def pack_rest(lines: Lines, rest: int, stream: str, source: str, distance: int, kind: PairPacking) -> None:
    """Append the packing of the last `rest` taps: the words at `stream` are those of the first channel and the second.

    `source` has {c} for the channel; variables: `group` the first sums of the pair, `zero`, `factor`.
    """
    with lines.loop("c", 2):
        lines.add(f"const int8_t *from = {source};", f"int16_t *to = (int16_t *)({stream} + c);", "")
        for tap in range(QUAD):
            place = _place(tap, 2)
            if tap >= rest:
                lines.add(f"to[{place}] = 0;")
                continue
            value = f"from[{tap * distance}] - zero" if kind.has_zero else f"from[{tap * distance}]"
            lines.add(f"to[{place}] = (int16_t)({f'2 * ({value})' if kind.is_doubled else value});")
        if kind.has_factor:
            total = " + ".join(f"to[{_place(tap, 2)}]" for tap in range(rest))
            lines.add(f"group[c] += factor * ({total});")


def _place(tap: int, width: int) -> int:
    """Return the place of a tap of a quad in halves, if each word is followed by those of `width` - 1 others."""
    place = ORDER.index(tap)
    return place // 2 * 2 * width + place % 2


def gather_rows(pixels: int) -> tuple[str, str]:
    """Return the name and the definition of the C function (to, from, rows, taps, row, distance).

    It widens `rows` rows to a block of `pixels`: rows are `row` elements apart, the taps of one `distance`. The last
    quad is padded with zeros; further rows are left.
    """
    name = f"gather_rows_{pixels}"
    places = ", ".join(str(_place(tap, pixels)) for tap in range(QUAD))
    lines = Lines()
    lines.add(f"static const uint8_t places[] = {{{places}}};", "")
    with lines.block("for (int pixel = 0; pixel < rows; pixel++)"):
        lines.add(
            "const int8_t *tap = from + pixel * row;",
            "int16_t *quad = (int16_t *)(to + pixel);",
            "int left = taps;",
            "",
        )
        with lines.block(f"for (; left >= {QUAD}; left -= {QUAD}, quad += {4 * pixels})"):
            for number in range(QUAD):
                lines.add(f"quad[{_place(number, pixels)}] = *tap;", "tap += distance;")
        with lines.block(f"for (int i = 0; left > 0 && i < {QUAD}; i++)"):
            lines.add("quad[places[i]] = i < left ? tap[i * distance] : 0;")
    parameters = "uint32_t *to, const int8_t *from, int rows, int taps, int row, int distance"
    return name, f"static __attribute__((noinline)) void {name}({parameters})\n{{\n{lines}}}\n"
