# SPDX-License-Identifier: Apache-2.0
"""Depthwise results of one channel from rows of words with two columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import added, naked
from opwest.compiler.kernels.dsp.planes import Planes
from opwest.compiler.kernels.dsp.tiles import clamped
from opwest.compiler.kernels.scaling import Epilogue

MAX_UNROLLED = 3
"""The most pairs of a row without a loop."""
_PLANE, _RESULT, _A, _B, _FREE = "r0", "r1", "r11", "r12", "lr"
_WEIGHTS = [f"r{number}" for number in range(2, 8)]
_WORDS = ["r8", "r9", "r10"]
_SUM, _MULTIPLIER, _ADDEND, _SHIFT, _COUNT, _LAST = range(0, 24, 4)
"""Offsets in the frame."""


@dataclass(frozen=True)
class Taps(ABC):
    """A function for the results of one channel: stride 1 or 2, no dilation.

    A row of a window has the words (t0, t1), (t2, t3), ... for results at even columns; with stride 1 also (t1, t2),
    (t3, t4), ... for those at odd columns, whose first product is that of t0 and the second half of a word.
    """

    planes: Planes
    results: int
    """The channels of the result."""
    ending: Epilogue
    prefix: ClassVar[str] = "taps"
    """The start of names."""

    @property
    def stride(self) -> int:
        """The stride of columns."""
        return self.planes.window.stride[1]

    @property
    def step(self) -> int:
        """The bytes from one result to the next."""
        return self.results * self.ending.bits // 8

    @property
    def even(self) -> int:
        """The words of a row for even columns."""
        return (self.planes.window.size[1] + 1) // 2

    @property
    def odd(self) -> int:
        """The words of a row for odd columns."""
        return self.planes.window.size[1] // 2 if self.stride == 1 else 0

    @property
    def firsts(self) -> list[int]:
        """The first tap of each word of a row, in the order of the words."""
        return [*range(0, 2 * self.even, 2), *range(1, 1 + 2 * self.odd, 2)]

    @property
    def constants(self) -> int:
        """The words of a channel: those of all rows, first sum, multiplier, addend, shift."""
        return self.planes.window.size[0] * len(self.firsts) + 4

    @property
    def name(self) -> str:
        """The name of the C function."""
        window = self.planes.window
        (kh, kw), strides = window.size, "x".join(map(str, window.stride))
        shape = f"{kh}x{kw}_{strides}_{window.result[1]}_{self.planes.words}_{self.results}"
        return f"{self.prefix}_{shape}_{self.ending.name}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those of the C function: rows of words, constants, result, rows of results."""
        return "const uint32_t *words", "const int32_t *constants", f"{self.ending.kind} *result", "int32_t rows"

    def constant_words(self, taps: Any) -> Any:
        """Return the words of channels for taps int64 [channel,kh,kw] as int64 [channel,words]."""
        halves = np.pad(taps, ((0, 0), (0, 0), (0, 3))) & 0xFFFF
        pairs = halves[:, :, :-1] | halves[:, :, 1:] << 16
        return pairs[:, :, self.firsts].reshape(len(taps), -1)

    @abstractmethod
    def definitions(self) -> tuple[str, ...]:
        """Return the C function and those that it calls."""

    def _store(self, register: str, result: str, free: str) -> Iterator[str]:
        """Yield the store of a result; the pointer `result` moves to the next one."""
        if self.step <= 255:
            yield f"{self.ending.store} {register}, [{result}], #{self.step}"
            return
        yield f"{self.ending.store} {register}, [{result}]"
        yield from added(result, self.step, free)


@dataclass(frozen=True)
class SmallTaps(Taps):
    """3x3 windows with a stride of 1: the words (t0, t1) and (t1, t2) of all rows are in registers."""

    @property
    def firsts(self) -> list[int]:
        """The first tap of each word of a row."""
        return [0, 1]

    def definitions(self) -> tuple[str, ...]:
        """Return the C function."""
        return (naked(self.name, self.parameters, self._lines()),)

    def _lines(self) -> Iterator[str]:
        columns, pitch = self.planes.window.result[1], self.planes.pitch
        turns, rest = divmod(columns, 2)
        yield from ("push {r4-r11, lr}", "sub sp, sp, #28", f"str r3, [sp, #{_COUNT}]", f"mov {_B}, r2")
        # The weights stay in r2 to r7; first sum, multiplier, addend and shift are on the stack.
        yield from ("ldm r1!, {r2-r7}", "ldm r1, {r8-r11}", "stm sp, {r8-r11}", f"mov {_RESULT}, {_B}", "1:")
        for row, word in enumerate(_WORDS):
            yield f"ldr {word}, [{_PLANE}, #{row * pitch}]"
        body = list(self._pair())
        if turns > MAX_UNROLLED:
            yield from (f"add {_FREE}, {_PLANE}, #{16 * turns}", f"str {_FREE}, [sp, #{_LAST}]", "2:")
            yield from body
            yield from (f"ldr {_FREE}, [sp, #{_LAST}]", f"cmp {_PLANE}, {_FREE}", "bne 2b")
        else:
            yield from body * turns
        if rest:
            yield from self._single()
        yield from added(_PLANE, self.planes.window.stride[0] * pitch - 16 * (turns + rest), _FREE)
        yield from (f"ldr {_FREE}, [sp, #{_COUNT}]", f"subs {_FREE}, {_FREE}, #1", f"str {_FREE}, [sp, #{_COUNT}]")
        yield from ("bne 1b", "add sp, sp, #28", "pop {r4-r11, pc}")

    def _pair(self) -> Iterator[str]:
        """Yield two neighbouring results.

        The words of a row are (x0, x1), then (x2, x3): the first sum is x0 t0 + x1 t1 + x2 t2, the second one
        x1 t0 + x2 t1 + x3 t2.
        """
        yield f"ldr {_FREE}, [sp, #{_SUM}]"
        for row, word in enumerate(_WORDS):
            first = _WEIGHTS[2 * row]
            yield f"smlad {_A}, {word}, {first}, {_FREE if row == 0 else _A}"
            yield f"smlabt {_B}, {first}, {word}, {_FREE if row == 0 else _B}"
        yield from self._next()
        for row, word in enumerate(_WORDS):
            second = _WEIGHTS[2 * row + 1]
            yield f"smlatb {_A}, {second}, {word}, {_A}"
            yield f"smlad {_B}, {word}, {second}, {_B}"
        yield from self._end([_A, _B])
        yield from self._stored(_A, 0)
        yield from self._stored(_B, self.step)
        yield from added(_RESULT, 2 * self.step, _FREE)

    def _single(self) -> Iterator[str]:
        """Yield one result."""
        yield f"ldr {_FREE}, [sp, #{_SUM}]"
        for row, word in enumerate(_WORDS):
            yield f"smlad {_A}, {word}, {_WEIGHTS[2 * row]}, {_FREE if row == 0 else _A}"
        yield from self._next()
        for row, word in enumerate(_WORDS):
            yield f"smlatb {_A}, {_WEIGHTS[2 * row + 1]}, {word}, {_A}"
        yield from self._end([_A])
        yield from self._store(_A, _RESULT, _FREE)

    def _next(self) -> Iterator[str]:
        """Yield the loads of the next word of each row."""
        pitch = self.planes.pitch
        yield f"ldr {_WORDS[0]}, [{_PLANE}, #16]!"
        for row in (1, 2):
            yield f"ldr {_WORDS[row]}, [{_PLANE}, #{row * pitch}]"

    def _stored(self, register: str, offset: int) -> Iterator[str]:
        if offset < 4096:
            yield f"{self.ending.store} {register}, [{_RESULT}, #{offset}]"
            return
        yield f"movw {_FREE}, #{offset}"
        yield f"{self.ending.store} {register}, [{_RESULT}, {_FREE}]"

    def _end(self, sums: list[str]) -> Iterator[str]:
        """Yield the instructions from sums to results, with one free register."""
        ending = self.ending
        yield f"ldr {_FREE}, [sp, #{_MULTIPLIER}]"
        yield from (
            f"{'smmulr' if ending.is_doubled else 'smmul'} {register}, {register}, {_FREE}" for register in sums
        )
        if ending.is_signed:
            yield from (f"add {register}, {register}, {register}, asr #31" for register in sums)
        yield f"ldr {_FREE}, [sp, #{_ADDEND}]"
        yield from (f"add {register}, {register}, {_FREE}" for register in sums)
        yield f"ldr {_FREE}, [sp, #{_SHIFT}]"
        yield from (f"asr {register}, {register}, {_FREE}" for register in sums)
        yield from clamped(sums, ending, _FREE)
