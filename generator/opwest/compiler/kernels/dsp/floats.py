# SPDX-License-Identifier: Apache-2.0
"""Layers of float32 on the FPU. Processors without one compute them in C."""

from __future__ import annotations

from opwest.compiler.emission.function import Call, emits
from opwest.compiler.ir.operations import Convolution, Depthwise, Elementwise, MatrixProduct, Pool
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.float_depthwise import columns_parts
from opwest.compiler.kernels.dsp.float_elements import FloatRun
from opwest.compiler.kernels.dsp.float_pools import FloatPool
from opwest.compiler.kernels.dsp.float_tiles import FloatTile
from opwest.compiler.kernels.floats.depthwise import depthwise_call
from opwest.compiler.kernels.floats.elements import elements_call
from opwest.compiler.kernels.floats.layers import Engine, convolution_call
from opwest.compiler.kernels.floats.matrix import product_call
from opwest.compiler.kernels.floats.pools import pool_call
from opwest.compiler.kernels.floats.tiles import Tile

CHANNELS = 4
SUMS = 16
"""The most sums of a tile."""


COPY = naked(
    "copy_words",
    ("int8_t *to", "const int8_t *from", "int32_t size"),
    (
        "push {r4-r9, lr}",
        "subs r2, r2, #32",
        "blt 2f",
        "1: ldm r1!, {r3-r9, r12}",
        "subs r2, r2, #32",
        "stm r0!, {r3-r9, r12}",
        "bge 1b",
        "2: adds r2, r2, #32",
        "beq 4f",
        "3: ldr r3, [r1], #4",
        "subs r2, r2, #4",
        "str r3, [r0], #4",
        "bne 3b",
        "4: pop {r4-r9, pc}",
    ),
    "int8_t *",
)
"""copy_words(to, from, size) of whole words, as copy_bytes()."""
FILL = naked(
    "fill_words",
    ("int8_t *to", "int32_t value", "int32_t size"),
    ("cmp r2, #0", "beq 2f", "1: subs r2, r2, #4", "str r1, [r0], #4", "bne 1b", "2: bx lr"),
    "int8_t *",
)
"""fill_words(to, value, size) of whole words; returns the end of `to`."""


def _parts(pixels: int, channels: int) -> list[tuple[int, Tile]]:
    """Return the tiles of as many channels as registers allow, then one of the rest."""
    wide = SUMS // pixels // CHANNELS * CHANNELS
    rest = channels % wide
    found: list[tuple[int, Tile]] = []
    if channels > rest:
        found.append((channels - rest, FloatTile(pixels, wide)))
    if rest:
        found.append((rest, FloatTile(pixels, rest)))
    return found


ENGINE = Engine(_parts, ("copy_words", "fill_words"), (COPY, FILL))


@emits(Convolution, "dsp-float", has_pitch=True)
def convolution(operation: Convolution) -> Call | None:
    """Return the call; None for other dtypes."""
    return convolution_call(operation, ENGINE)


@emits(Depthwise, "dsp-float", has_pitch=True)
def depthwise(operation: Depthwise) -> Call | None:
    """Return the call; None for other dtypes, several results of each channel, and wide windows."""
    return depthwise_call(operation, ENGINE, columns_parts)


@emits(MatrixProduct, "dsp-float")
def product(operation: MatrixProduct) -> Call | None:
    """Return the call; None for other dtypes."""
    return product_call(operation, ENGINE)


@emits(Elementwise, "dsp-float", has_pitch=True)
def elements(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes, and short runs."""
    return elements_call(operation, FloatRun)


@emits(Pool, "dsp-float", has_pitch=True)
def pool(operation: Pool) -> Call | None:
    """Return the call; None for other functions and dtypes, and windows outside of the image."""
    return pool_call(operation, FloatPool)
