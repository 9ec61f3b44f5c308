# SPDX-License-Identifier: Apache-2.0
"""Depthwise results of one channel for windows of any size: four columns at a time in assembly; in C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines
from opwest.compiler.kernels.assembly import added, naked
from opwest.compiler.kernels.dsp.intrinsics import SMLABT, SMLAD, ended
from opwest.compiler.kernels.dsp.planes import CHANNELS
from opwest.compiler.kernels.dsp.taps import Taps
from opwest.compiler.kernels.dsp.tiles import results

COLUMNS = 4
"""The results at a time."""
MAX_UNROLLED = 25
"""The taps of windows whose rows are not a loop."""
_PLANE, _CONSTANTS, _RESULT, _ROW, _COUNT, _DATA = "r0", "r1", "r2", "r3", "r12", "lr"
_SUMS = ("r4", "r5", "r6", "r7")
_WEIGHTS = ("r8", "r9", "r10", "r11")
_WORD = 4 * CHANNELS
"""The bytes from a word of a channel to its next one."""


@dataclass(frozen=True)
class ColumnTaps(Taps):
    """Windows of any size: words are loaded when the first result needs them, and stay until the last one did."""

    prefix: ClassVar[str] = "columns"

    @property
    def odd(self) -> int:
        """The words of a row for odd columns, if there are any."""
        return super().odd if self.planes.window.result[1] > 1 else 0

    @property
    def firsts(self) -> list[int]:
        """The first tap of each word of a row, in the order of their use."""
        return [first for word in range(self.even + 1) for first in self._loaded(word)]

    @property
    def can_reach(self) -> bool:
        """Whether offsets reach the numbers behind the words."""
        return 4 * self.constants < 4096

    def _loaded(self, word: int) -> list[int]:
        """Return the first taps of the words that are loaded with a word of data."""
        taps = [2 * word] if word < self.even else []
        return [*taps, 2 * word - 1] if 0 < word <= self.odd else taps

    def _register(self, tap: int) -> str:
        """Return the register of a word by its first tap."""
        if self.stride == 2:
            return _WEIGHTS[tap // 2 % 4]
        return _WEIGHTS[tap // 2 % 2 + (2 if tap % 2 else 0)]

    def definitions(self) -> tuple[str, ...]:
        """Return the C function."""
        return (naked(self.name, self.parameters, self._lines()),)

    def _lines(self) -> Iterator[str]:
        turns, rest = divmod(self.planes.window.result[1], COLUMNS)
        step = COLUMNS * self.stride * _WORD // 2
        yield "push {r3-r11, lr}"
        if not self._is_unrolled:
            yield "sub sp, sp, #8"
        yield "1:"
        if turns > 1:
            yield f"movw {_COUNT}, #{turns}"
            yield "2:"
        if turns:
            if not self._is_unrolled and turns > 1:
                yield f"str {_COUNT}, [sp]"
            yield from self._group(COLUMNS)
            yield from added(_PLANE, step, _DATA)
            if turns > 1:
                if not self._is_unrolled:
                    yield f"ldr {_COUNT}, [sp]"
                yield f"subs {_COUNT}, {_COUNT}, #1"
                yield "bne 2b"
        if rest:
            yield from self._group(rest)
        yield from added(_PLANE, self.planes.window.stride[0] * self.planes.pitch - turns * step, _DATA)
        rows = 0 if self._is_unrolled else 8
        yield f"ldr {_DATA}, [sp, #{rows}]"
        yield f"subs {_DATA}, {_DATA}, #1"
        yield f"str {_DATA}, [sp, #{rows}]"
        yield "bne 1b"
        if rows:
            yield "add sp, sp, #8"
        yield "pop {r3-r11, pc}"

    @property
    def _is_unrolled(self) -> bool:
        kh, kw = self.planes.window.size
        return kh * kw <= MAX_UNROLLED

    def _group(self, count: int) -> Iterator[str]:
        """Yield the results of neighbouring columns."""
        kh, pitch = self.planes.window.size[0], self.planes.pitch
        words = 4 * (self.constants - 4)
        sums = list(_SUMS[:count])
        yield f"ldr {sums[0]}, [{_CONSTANTS}, #{words}]"
        yield from (f"mov {register}, {sums[0]}" for register in sums[1:])
        if not self._is_unrolled:
            yield f"mov {_ROW}, {_PLANE}"
            yield f"movw {_COUNT}, #{kh}"
            yield "3:"
            yield from self._row(count, _ROW, 0)
            yield from added(_ROW, pitch, _DATA)
            yield f"subs {_COUNT}, {_COUNT}, #1"
            yield "bne 3b"
        elif kh * pitch < 4096:
            for row in range(kh):
                yield from self._row(count, _PLANE, row * pitch)
        else:
            yield f"mov {_ROW}, {_PLANE}"
            for row in range(kh):
                yield from self._row(count, _ROW, 0)
                if row < kh - 1:
                    yield from added(_ROW, pitch, _DATA)
        # The first sum is loaded as well.
        yield f"ldm {_CONSTANTS}, {{{', '.join(_WEIGHTS)}}}"
        yield f"sub {_CONSTANTS}, {_CONSTANTS}, #{words}"
        yield from results(sums, self.ending, (_WEIGHTS[1], _WEIGHTS[2], _WEIGHTS[3]))
        for register in sums:
            yield from self._store(register, _RESULT, _DATA)

    def _row(self, count: int, base: str, offset: int) -> Iterator[str]:
        """Yield the products of a row of the window."""
        kw = self.planes.window.size[1]
        last = (count - 1) * self.stride + kw - 1
        for word in range(max(last // 2, self.even, self.odd) + 1):
            loaded = self._loaded(word)
            registers = [self._register(tap) for tap in loaded]
            if len(loaded) == 2:
                yield f"ldrd {', '.join(registers)}, [{_CONSTANTS}], #8"
            elif loaded:
                yield f"ldr {registers[0]}, [{_CONSTANTS}], #4"
            products = list(self._products(count, word))
            if products:
                yield f"ldr {_DATA}, [{base}, #{offset + word * _WORD}]"
                yield from products

    def _products(self, count: int, word: int) -> Iterator[str]:
        """Yield the products of a word of data."""
        for number, register in enumerate(_SUMS[:count]):
            tap = 2 * word - number * self.stride
            if tap == -1:
                yield f"smlabt {register}, {self._register(0)}, {_DATA}, {register}"
            elif 0 <= tap < self.planes.window.size[1]:
                yield f"smlad {register}, {_DATA}, {self._register(tap)}, {register}"


MAX_COLUMNS = 16
"""The columns of a window whose products are not a loop."""


@dataclass(frozen=True)
class AnyTaps(Taps):
    """Windows of any size, and the long form of the scaling."""

    def definitions(self) -> tuple[str, ...]:
        """Return the C function and those that it calls."""
        lines = Lines()
        end, text = ended(self.ending)
        at_once = 2 if self.stride == 1 else 1
        turns, rest = divmod(self.planes.window.result[1], at_once)
        first = self.constants - 4
        lines.add(
            f"const int32_t first = constants[{first}], multiplier = constants[{first + 1}];",
            f"const int32_t addend = constants[{first + 2}], shift = constants[{first + 3}];",
            "",
        )
        pitch = self.planes.pitch // 4
        with lines.block(f"for (; rows > 0; rows--, words += {self.planes.window.stride[0] * pitch})"):
            lines.add("const uint32_t *p = words;", "")
            with lines.block(f"for (int i = 0; i < {turns}; i++, p += 4)"):
                self._sums(lines, pitch, at_once)
                for place in range(at_once):
                    lines.add(f"*result = {end}(s{place}, multiplier, addend, shift);", f"result += {self.results};")
            if rest:
                with lines.block(""):
                    self._sums(lines, pitch, 1)
                    lines.add(f"*result = {end}(s0, multiplier, addend, shift);", f"result += {self.results};")
        head = f"static void {self.name}({', '.join(self.parameters)})"
        used = (SMLAD, SMLABT) if at_once == 2 else (SMLAD,)
        return *used, text, f"{head}\n{{\n{lines}}}\n"

    def _sums(self, lines: Lines, pitch: int, count: int) -> None:
        """Append the sums s0 and s1 of the window at p."""
        kh, kw = self.planes.window.size
        per_row = self.even + self.odd
        lines.add(f"int32_t {', '.join(f's{place} = first' for place in range(count))};", "")
        if kh * kw <= MAX_UNROLLED:
            for row in range(kh):
                self._row(lines, f"p + {row * pitch}", f"constants + {row * per_row}", count)
            return
        lines.add("const uint32_t *q = p;", "const int32_t *w = constants;", "")
        with lines.block(f"for (int ky = 0; ky < {kh}; ky++, q += {pitch}, w += {per_row})"):
            self._row(lines, "q", "w", count)

    def _row(self, lines: Lines, words: str, weights: str, count: int) -> None:
        for place in range(self.even):
            lines.add(f"s0 = smlad(({words})[{4 * place}], (uint32_t)({weights})[{place}], s0);")
        if count == 1:
            return
        lines.add(f"s1 = smlabt((uint32_t)({weights})[0], ({words})[0], s1);")
        for place in range(self.odd):
            lines.add(f"s1 = smlad(({words})[{4 * place + 4}], (uint32_t)({weights})[{self.even + place}], s1);")
