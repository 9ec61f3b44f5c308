# SPDX-License-Identifier: Apache-2.0
"""Depthwise results of one channel from rows of words with two columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.planes import Planes, added
from opwest.compiler.kernels.dsp.tiles import Epilogue, clamped

MAX_UNROLLED = 3
"""The most pairs of a row without a loop."""
_PLANE, _RESULT, _A, _B, _FREE = "r0", "r1", "r11", "r12", "lr"
_WEIGHTS = [f"r{number}" for number in range(2, 8)]
_WORDS = ["r8", "r9", "r10"]
_SUM, _MULTIPLIER, _ADDEND, _SHIFT, _COUNT, _LAST = range(0, 24, 4)
"""Offsets in the frame."""


@dataclass(frozen=True)
class Taps:
    """A function for the results of one channel: 3x3 windows, stride 1 or 2."""

    planes: Planes
    results: int
    """The channels of the result."""
    ending: Epilogue

    @property
    def stride(self) -> int:
        """The stride of windows."""
        return self.planes.window.stride[1]

    @property
    def step(self) -> int:
        """The bytes from one result to the next."""
        return self.results * self.ending.bits // 8

    @property
    def name(self) -> str:
        """The name of the C function."""
        columns = self.planes.window.result[1]
        strides = "x".join(map(str, self.planes.window.stride))
        return f"taps_3x3_{strides}_{columns}_{self.planes.words}_{self.results}_{self.ending.name}"

    constants: ClassVar[int] = 10
    """The words of a channel."""

    def words(self, taps: Any) -> Any:
        """Return the words of channels for taps int64 [channel,3,3]: (t0, t1) and (t1, t2) of each row."""
        halves = taps & 0xFFFF
        return (halves[:, :, :2] | halves[:, :, 1:] << 16).reshape(len(taps), 6)

    def definitions(self) -> tuple[str, ...]:
        """Return the C function (rows of words, constants, result, rows of results)."""
        parameters = (
            "const uint32_t *words",
            "const int32_t *constants",
            f"{self.ending.kind} *result",
            "int32_t rows",
        )
        return (naked("void", self.name, parameters, self._lines()),)

    def _lines(self) -> Iterator[str]:
        columns, pitch = self.planes.window.result[1], self.planes.pitch
        at_once = 2 if self.stride == 1 else 1
        turns, rest = divmod(columns, at_once)
        yield "push {r4-r11, lr}"
        yield "sub sp, sp, #28"
        yield f"str r3, [sp, #{_COUNT}]"
        yield f"mov {_B}, r2"
        yield "ldm r1!, {r2-r7}"
        yield "ldm r1, {r8-r11}"
        yield "stm sp, {r8-r11}"
        yield f"mov {_RESULT}, {_B}"
        yield "1:"
        for row, word in enumerate(_WORDS):
            yield f"ldr {word}, [{_PLANE}, #{row * pitch}]"
        body = list(self._pair() if self.stride == 1 else self._single())
        if turns > MAX_UNROLLED:
            yield f"add {_FREE}, {_PLANE}, #{16 * turns}"
            yield f"str {_FREE}, [sp, #{_LAST}]"
            yield "2:"
            yield from body
            yield f"ldr {_FREE}, [sp, #{_LAST}]"
            yield f"cmp {_PLANE}, {_FREE}"
            yield "bne 2b"
        else:
            yield from body * turns
        if rest:
            yield from self._single()
        yield from added(_PLANE, self.planes.window.stride[0] * pitch - 16 * (turns + rest), _FREE)
        yield f"ldr {_FREE}, [sp, #{_COUNT}]"
        yield f"subs {_FREE}, {_FREE}, #1"
        yield f"str {_FREE}, [sp, #{_COUNT}]"
        yield "bne 1b"
        yield "add sp, sp, #28"
        yield "pop {r4-r11, pc}"

    def _pair(self) -> Iterator[str]:
        """Yield two neighbouring results of stride 1: the words (t0, t1) and (t1, t2) of each row of the window."""
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
        if self.step <= 255:
            yield f"{self.ending.store} {_A}, [{_RESULT}], #{self.step}"
            return
        yield f"{self.ending.store} {_A}, [{_RESULT}]"
        yield from added(_RESULT, self.step, _FREE)

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
        for one in sums:
            yield f"{'smmulr' if ending.is_doubled else 'smmul'} {one}, {one}, {_FREE}"
        if ending.is_mixed:
            yield f"ldr {_FREE}, [sp, #{_SHIFT}]"
            yield f"cmp {_FREE}, #0"
            yield "itt mi" if len(sums) > 1 else "it mi"
            for one in sums:
                yield f"addmi {one}, {one}, {one}, asr #31"
        elif ending.is_signed:
            for one in sums:
                yield f"add {one}, {one}, {one}, asr #31"
        yield f"ldr {_FREE}, [sp, #{_ADDEND}]"
        for one in sums:
            yield f"add {one}, {one}, {_FREE}"
        yield f"ldr {_FREE}, [sp, #{_SHIFT}]"
        for one in sums:
            yield f"asr {one}, {one}, {_FREE}"
        yield from clamped(sums, ending, _FREE)
