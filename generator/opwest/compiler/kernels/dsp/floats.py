# SPDX-License-Identifier: Apache-2.0
"""Layers of float32 on the FPU. Processors without one compute them in C."""

from __future__ import annotations

from opwest.compiler.emission.function import Call, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.dsp.float_tiles import FloatTile
from opwest.compiler.kernels.float_layers import Parts, convolution_call
from opwest.compiler.kernels.float_tiles import Tile

CHANNELS = 4
WIDE = 8
"""The channels of a tile of one pixel."""


def parts_with(is_joined: bool) -> Parts:
    """Return the division of channels: tiles of as many channels as registers allow, then one of the rest."""

    def parts(pixels: int, channels: int) -> list[tuple[int, Tile]]:
        wide = WIDE if pixels == 1 else CHANNELS
        rest = channels % wide
        found: list[tuple[int, Tile]] = []
        if channels > rest:
            found.append((channels - rest, FloatTile(pixels, wide, is_joined)))
        if rest:
            found.append((rest, FloatTile(pixels, rest, is_joined)))
        return found

    return parts


@emits(Convolution, "dsp-float", has_pitch=True)
def convolution(operation: Convolution) -> Call | None:
    """Return the call; None for other dtypes."""
    return convolution_call(operation, parts_with(is_joined=False))
