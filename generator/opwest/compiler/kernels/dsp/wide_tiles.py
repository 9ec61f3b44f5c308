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
from opwest.compiler.kernels.dsp.streamed import NEXT_GROUP, Stream
from opwest.compiler.kernels.scaling import Epilogue

PIXELS = CHANNELS = 2
_SUMS = [(f"r{low}", f"r{low + 1}") for low in range(2, 10, 2)]


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
        load = ("ldm r1, {r2-r5}", "ldm r1!, {r6-r9}")
        stream = Stream(load, list(self._step()), self.steps, PIXELS * 4, list(self._end()), self.loop_bytes)
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

    def _step(self) -> Iterator[str]:
        yield "ldrd r10, r11, [r1], #8"
        yield "ldrd r12, lr, [r0], #8"
        for place, (low, high) in enumerate(_SUMS):
            yield f"smlald {low}, {high}, {('r12', 'lr')[place // 2]}, {('r10', 'r11')[place % 2]}"


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
