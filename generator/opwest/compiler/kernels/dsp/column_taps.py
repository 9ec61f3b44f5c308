# SPDX-License-Identifier: Apache-2.0
"""Depthwise results of one channel for windows of any size: four columns at a time, from rows of words with two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.planes import CHANNELS, Planes, added
from opwest.compiler.kernels.dsp.tiles import Epilogue, results

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
class ColumnTaps:
    """A function for the results of one channel: stride 1 or 2, no dilation.

    A row of a window has the words (t0, t1), (t2, t3), ... for results at even columns; with stride 1 also (t1, t2),
    (t3, t4), ... for those at odd columns, whose first product is that of t0 and the second half of a word. Words are
    loaded when the first result needs them, and stay in registers until the last one did.
    """

    planes: Planes
    results: int
    """The channels of the result."""
    ending: Epilogue

    @property
    def stride(self) -> int:
        """The stride of columns."""
        return self.planes.window.stride[1]

    @property
    def even(self) -> int:
        """The words of a row for even columns."""
        return (self.planes.window.size[1] + 1) // 2

    @property
    def odd(self) -> int:
        """The words of a row for odd columns."""
        is_needed = self.stride == 1 and self.planes.window.result[1] > 1
        return self.planes.window.size[1] // 2 if is_needed else 0

    @property
    def constants(self) -> int:
        """The words of a channel."""
        return self.planes.window.size[0] * (self.even + self.odd) + 4

    @property
    def step(self) -> int:
        """The bytes from one result to the next."""
        return self.results * self.ending.bits // 8

    @property
    def name(self) -> str:
        """The name of the C function."""
        (kh, kw), columns = self.planes.window.size, self.planes.window.result[1]
        stride = "x".join(map(str, self.planes.window.stride))
        return f"columns_{kh}x{kw}_{stride}_{columns}_{self.planes.words}_{self.results}_{self.ending.name}"

    @property
    def can_reach(self) -> bool:
        """Whether offsets reach the numbers behind the words."""
        return 4 * self.constants < 4096

    def words(self, taps: Any) -> Any:
        """Return the words of channels for taps [channel,kh,kw] as int64 [channel,words], in the order of their use."""
        channels, kh, kw = taps.shape
        padded = np.zeros((channels, kh, kw + 3), np.int64)
        padded[:, :, :kw] = taps
        halves = padded & 0xFFFF
        pairs = halves[:, :, :-1] | halves[:, :, 1:] << 16
        firsts = [first for word in range(self.even + 1) for first in self._loaded(word)]
        return pairs[:, :, firsts].reshape(channels, -1)

    def _loaded(self, word: int) -> list[int]:
        """Return the first taps of the words that are loaded with a word of data."""
        found = [2 * word] if word < self.even else []
        return [*found, 2 * word - 1] if 0 < word <= self.odd else found

    def _register(self, tap: int) -> str:
        """Return the register of a word by its first tap."""
        if self.stride == 2:
            return _WEIGHTS[tap // 2 % 4]
        return _WEIGHTS[tap // 2 % 2 + (2 if tap % 2 else 0)]

    def definitions(self) -> tuple[str, ...]:
        """Return the C function (rows of words, constants, result, rows of results)."""
        result = f"{self.ending.kind} *result"
        parameters = ("const uint32_t *words", "const int32_t *constants", result, "int32_t rows")
        return (naked("void", self.name, parameters, self._lines()),)

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
        last = self.planes.window.stride[0] * self.planes.pitch - turns * step
        if last < 0:
            yield f"sub {_PLANE}, {_PLANE}, #{-last}"
        yield from added(_PLANE, max(0, last), _DATA)
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
        yield from (f"mov {one}, {sums[0]}" for one in sums[1:])
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
        for one in sums:
            if self.step <= 255:
                yield f"{self.ending.store} {one}, [{_RESULT}], #{self.step}"
            else:
                yield f"{self.ending.store} {one}, [{_RESULT}]"
                yield from added(_RESULT, self.step, _DATA)

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
        for number, one in enumerate(_SUMS[:count]):
            tap = 2 * word - number * self.stride
            if tap == -1:
                yield f"smlabt {one}, {self._register(0)}, {_DATA}, {one}"
            elif 0 <= tap < self.planes.window.size[1]:
                yield f"smlad {one}, {_DATA}, {self._register(tap)}, {one}"
