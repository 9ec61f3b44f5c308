# SPDX-License-Identifier: Apache-2.0
"""Tiles of float32 depthwise convolutions for the FPU.

Registers: r0 rows of the window, r1 column, r3 bytes between columns, r4 stream, r5 bytes to the first column, r7
counter, r8 result, r9 numbers, r10 first row, r11 channels. s0 and following: sums, weights of a row of the window, a
column of data, products.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.float_tiles import HAS_FPU, REGISTERS, SAVED, add_products, end_of_sums, span
from opwest.compiler.kernels.floats.depthwise import PARAMETERS, Columns, offset_of
from opwest.compiler.kernels.floats.tiles import guarded

CHANNELS = 4


@dataclass(frozen=True)
class FloatColumns(Columns):
    """A tile whose sums, and the weights of a row of the window, are in registers."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"float_columns_{self.shape}"

    def definition(self) -> str:
        """Return the C text of the function."""
        text = naked(self.name, PARAMETERS, self._lines(is_joined=False), paired=self._lines(is_joined=True))
        return guarded([(HAS_FPU, text)], self.fallback())

    def _lines(self, is_joined: bool) -> Iterator[str]:
        sums, wide = self.pixels * self.channels, self.channels
        data = sums + self.width * wide
        yield from ("push {r4-r11, lr}", "vpush {s16-s31}", "mov r10, r0", "mov r4, r1", "mov r8, r2", "mov r9, r3")
        yield from (f"ldr r11, [sp, #{SAVED}]", f"ldr r5, [sp, #{SAVED + 8}]", f"ldr r3, [r9, #{offset_of('column')}]")
        yield from ("1:", "mov r0, r10", f"vldm r4!, {span(0, wide)}")
        yield from (f"vmov.f32 s{i}, s{i % wide}" for i in range(wide, sums))
        yield from (f"ldr r7, [r9, #{offset_of('rows')}]", "2:", "ldr r1, [r0], #4")
        yield from (f"vldm r4!, {span(sums, self.width * wide)}", "add r1, r1, r5")
        free = [f"s{i}" for i in range(data + wide, REGISTERS)][:4]
        for number, products in enumerate(self.products()):
            if number:
                yield "add r1, r1, r3"
            if products:
                yield f"vldm r1, {span(data, wide)}"
            yield from add_products(
                [
                    (f"s{pixel * wide + c}", f"s{data + c}", f"s{sums + column * wide + c}")
                    for pixel, column in products
                    for c in range(wide)
                ],
                free,
                is_joined,
            )
        yield from ("subs r7, r7, #1", "bne 2b")
        yield from end_of_sums(self.pixels, wide, offset_of)
        yield from (f"add r5, r5, #{4 * wide}", f"subs r11, r11, #{wide}", "bgt 1b")
        yield from ("vpop {s16-s31}", "pop {r4-r11, pc}")


def most_pixels(width: int) -> int:
    """Return the greatest number of pixels of a tile; below 1 if the weights of a row need too many registers."""
    return (REGISTERS - CHANNELS * (width + 2)) // CHANNELS


def columns_parts(columns: int, channels: int, window: tuple[int, int, int, int]) -> list[tuple[int, Columns]]:
    """Return the tiles of parts of the channels; none for wide windows."""
    pixels = min(columns, most_pixels(window[1]))
    if pixels < 1:
        return []
    rest = channels % CHANNELS
    sizes = [(channels - rest, CHANNELS), (rest, rest)]
    return [(some, FloatColumns(pixels, wide, *window)) for some, wide in sizes if some]
