# SPDX-License-Identifier: Apache-2.0
"""Tiles of float32 depthwise convolutions for the vector extension with floating point: a vector of 4 channels.

Registers: r0 rows of the window, r1 column, r2 result, r3 numbers, r4 stream, r5 bytes to the first column, r6 bytes
between columns, r7 channels, r11 first row, lr turns. q0 and following: sums, weights of a row of the window, a column.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.floats.depthwise import PARAMETERS, Columns, offset_of
from opwest.compiler.kernels.floats.tiles import guarded
from opwest.compiler.kernels.mve.float_tiles import HAS_MVE_FLOAT, LANES, SAVED, limited

VECTORS = 8


@dataclass(frozen=True)
class VectorColumns(Columns):
    """A tile of vectors. `is_part`: the channels are no whole vectors, so that only a part of the last one is read."""

    is_part: bool = False

    @property
    def has_rest(self) -> bool:
        """Whether the channels can be no whole blocks."""
        return self.is_part

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"mve_float_columns_{self.shape}{'_part' if self.is_part else ''}"

    def definition(self) -> str:
        """Return the C text of the function."""
        return guarded([(HAS_MVE_FLOAT, naked(self.name, PARAMETERS, self._lines()))], self.fallback())

    def _lines(self) -> Iterator[str]:
        data = self.pixels + self.width
        yield from ("push {r4-r11, lr}", "vpush {d8-d15}", f"ldr r7, [sp, #{SAVED}]", f"ldr r5, [sp, #{SAVED + 8}]")
        yield from (f"ldr r6, [r3, #{offset_of('column')}]", f"ldr r8, [r3, #{offset_of('result')}]", "mov r4, r1")
        yield from (
            "mov r11, r0",
            "1:",
            "mov r0, r11",
            "vldrw.32 q0, [r4], #16",
            *(f"vmov q{i}, q0" for i in range(1, self.pixels)),
        )
        yield from (f"ldr r9, [r3, #{offset_of('rows')}]", *(["vctp.32 r7"] if self.is_part else []), "dls lr, r9")
        yield from ("2:", "ldr r1, [r0], #4", "add r1, r1, r5")
        yield from (f"vldrw.32 q{self.pixels + column}, [r4], #16" for column in range(self.width))
        for number, products in enumerate(self.products()):
            if number:
                yield "add r1, r1, r6"
            if products:
                yield from ("vpst", f"vldrwt.32 q{data}, [r1]") if self.is_part else (f"vldrw.32 q{data}, [r1]",)
            yield from (f"vfma.f32 q{pixel}, q{data}, q{self.pixels + column}" for pixel, column in products)
        yield from ("le lr, 2b", f"vldrw.32 q{data}, [r4], #16")
        yield from (f"vadd.f32 q{pixel}, q{pixel}, q{data}" for pixel in range(self.pixels))
        yield from limited(range(self.pixels), "r3", offset_of, "r9")
        yield from ("vctp.32 r7", "mov r9, r2", "add r2, r2, #16", "add r5, r5, #16")
        for pixel in range(self.pixels):
            yield from ("vpst", f"vstrwt.32 q{pixel}, [r9]", *(["add r9, r9, r8"] if pixel + 1 < self.pixels else []))
        yield from (f"subs r7, r7, #{LANES}", "bgt 1b", "vpop {d8-d15}", "pop {r4-r11, pc}")


def columns_parts(columns: int, channels: int, window: tuple[int, int, int, int]) -> list[tuple[int, Columns]]:
    """Return the tile of all channels; none for wide windows."""
    pixels = min(columns, VECTORS - 1 - window[1])
    if pixels < 1:
        return []
    return [(channels, VectorColumns(pixels, LANES, *window, channels % LANES != 0))]
