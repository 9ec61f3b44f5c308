# SPDX-License-Identifier: Apache-2.0
"""Tiles of 64-bit sums: 2 pixels by 2 channels of int16 weights, for int16 data whose sums can exceed 32 bits.

The tile reads a block of data, [step][pixel] words of two taps, and a stream of constants: for each pair of channels
the first sums of 64 bits, then the weights [step][channel]. It stores the sums [pixel][channel]; C code ends them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines
from opwest.compiler.kernels.assembly import added, naked
from opwest.compiler.kernels.dsp.intrinsics import ended
from opwest.compiler.kernels.dsp.streamed import NEXT_GROUP, SAVED, Stream
from opwest.compiler.kernels.dsp.tiles import clamped
from opwest.compiler.kernels.scaling import Epilogue, Scaling

PIXELS = CHANNELS = 2
_SUMS = [(f"r{low}", f"r{low + 1}") for low in range(2, 10, 2)]
_LOAD = ("ldm r1, {r2-r5}", "ldm r1!, {r6-r9}")
_STEP = (
    "ldrd r10, r11, [r1], #8",
    "ldrd r12, lr, [r0], #8",
    *(
        f"smlald {low}, {high}, {('r12', 'lr')[place // 2]}, {('r10', 'r11')[place % 2]}"
        for place, (low, high) in enumerate(_SUMS)
    ),
)
"""The products of one pair of taps."""


@dataclass(frozen=True)
class WideTile:
    """A function for all pairs of channels of a block of pixels."""

    steps: int
    """Pairs of taps."""
    channels: int
    """The channels of all pairs."""
    loop_bytes: int | None
    """The bytes that its code should have; None: no limit."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        return f"tile_2x2_wide_{2 * self.steps}_{self.channels}"

    def definition(self) -> str:
        """Return the C function (data, stream, sums, end of the stream)."""
        parameters = ("const uint32_t *data", "const int32_t *stream", "uint32_t *sums", "const int32_t *end")
        stream = Stream(_LOAD, _STEP, self.steps, PIXELS * 4, list(self._end()), self.loop_bytes)
        return naked(self.name, parameters, stream.lines(), paired=stream.paired())

    def _end(self) -> Iterator[str]:
        yield "ldrd r10, r11, [sp, #4]"  # the sums, and the end of the stream
        yield "stm r10!, {r2-r5}"
        yield "str r10, [sp, #4]"
        yield from added("r10", 8 * self.channels - 16, "r12")
        yield "stm r10, {r6-r9}"
        yield "ldr r0, [sp]"
        yield "cmp r1, r11"
        yield from NEXT_GROUP[3:]


@dataclass(frozen=True)
class EndedTile:
    """A tile that ends its sums: result = clamp((the high 32 bits of sum * multiplier + addend) >> shift).

    The sum times the multiplier has up to 64 bits below the high 32 bits of 96: those must be a number of 32 bits.
    """

    steps: int
    """Pairs of taps."""
    stored: int
    """The channels of a pair that are results; the others pad the stream."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Epilogue
    loop_bytes: int | None
    """The bytes that its code should have; None: no limit."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        return f"tile_2x2{part}_high_{2 * self.steps}{'' if self.has_each else '_equal'}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result, step from pixel to pixel in bytes, end of the stream, numbers).

        Only a tile without numbers of each channel has the parameter `numbers`.
        """
        parameters = ["const uint32_t *data", "const int32_t *stream", f"{self.ending.kind} *result", "int32_t step"]
        parameters += ["const int32_t *end", *([] if self.has_each else ["const int32_t *numbers"])]
        stream = Stream(_LOAD, _STEP, self.steps, PIXELS * 4, list(self._end()), self.loop_bytes)
        return naked(self.name, parameters, stream.lines(), paired=stream.paired())

    def _end(self) -> Iterator[str]:
        if not self.has_each:
            yield f"ldr r12, [sp, #{SAVED + 4}]"
            yield "ldm r12, {r10-r12}"
        for channel in range(self.stored):
            pairs = _SUMS[channel::CHANNELS]
            if self.has_each:
                yield "ldm r1!, {r10-r12}"
            for low, high in pairs:
                yield f"umull lr, {low}, {low}, r10"
                yield f"mla {high}, {high}, r10, {low}"
            for _, high in pairs:
                yield f"add {high}, {high}, r11"
                yield f"asr {high}, {high}, r12"
            yield from clamped([high for _, high in pairs], self.ending, "lr")
        if self.has_each and self.stored < CHANNELS:
            yield f"adds r1, r1, #{12 * (CHANNELS - self.stored)}"
        yield "ldrd r0, lr, [sp, #4]"
        for channel in range(self.stored):
            (_, first), (_, second) = _SUMS[channel::CHANNELS]
            yield f"strh {second}, [r0, lr]"
            yield f"strh {first}, [r0], #2"
        yield "str r0, [sp, #4]"
        yield from NEXT_GROUP


def high_numbers(scaling: Scaling, bounds: Any) -> Any:
    """Return the numbers int32 [o,3] of an EndedTile from those of a long form, for sums of a magnitude up to `bounds`.

    None: a number does not fit in 32 bits.
    """
    rows = []
    for bound, multiplier, zero, shift in zip(map(int, bounds), *scaling.ends.T.tolist(), strict=True):
        if multiplier == 0:
            rows.append((0, 1 + 2 * zero, 1))
            continue
        # The multiplier of 15 bits has up to 16 more, so that at least one bit remains to be shifted out.
        more = max(0, 33 - shift)
        rest = shift + more - 32
        addend = (1 << (rest - 1)) + (zero << rest)
        if more > 16 or (bound * multiplier << more >> 32) + 1 + abs(addend) >= 1 << 31:
            return None
        rows.append((multiplier << more, addend, rest))
    return np.asarray(rows, np.int32)


def wide_stream(weights: Any, sums: Any, channels: int) -> Any:
    """Return the int32 words of all groups of `channels`: weights [o,k] with an even k, first sums [o]."""
    missing = -len(weights) % channels
    padded = np.pad(weights.astype(np.int64), ((0, missing), (0, 0)))
    first = np.pad(sums.astype(np.int64), (0, missing))
    groups = len(padded) // channels
    pairs = padded.reshape(groups, channels, -1, 2)
    words = (pairs[..., 0] & 0xFFFF | pairs[..., 1] << 16).transpose(0, 2, 1).reshape(groups, -1)
    starts = np.stack([first, first >> 32], axis=1).reshape(groups, -1)
    return np.concatenate([starts, words], axis=1).astype(np.int32).reshape(-1)


def ends_of_sums(ending: Epilogue) -> tuple[str, tuple[str, ...]]:
    """Return the name and the definitions of the C function (sums, ends, result, channels)."""
    one, text = ended(ending)
    name = f"ends_{ending.name}"
    lines = Lines()
    with lines.block("for (; channels > 0; channels--, sums += 2, ends += 3)"):
        lines.add(
            "const int64_t sum = (int64_t)((uint64_t)sums[1] << 32 | sums[0]);",
            "",
            f"*result++ = {one}(sum, ends[0], ends[1], ends[2]);",
        )
    parameters = f"const uint32_t *sums, const int32_t *ends, {ending.kind} *result, int32_t channels"
    head = f"static __attribute__((noinline)) void {name}({parameters})"
    return name, (text, f"{head}\n{{\n{lines}}}\n")
