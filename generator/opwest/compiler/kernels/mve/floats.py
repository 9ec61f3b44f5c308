# SPDX-License-Identifier: Apache-2.0
"""Layers of float32 with vectors. Processors whose vectors have no floating point compute them in C.

Products are added without a rounding between: results differ from those of the portable variants in last bits.
"""

from __future__ import annotations

from opwest.compiler.emission.function import Call, emits
from opwest.compiler.ir.operations import Convolution, Depthwise, Elementwise, MatrixProduct, Pool
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.floats.depthwise import depthwise_call
from opwest.compiler.kernels.floats.elements import elements_call
from opwest.compiler.kernels.floats.layers import Engine, convolution_call
from opwest.compiler.kernels.floats.matrix import product_call
from opwest.compiler.kernels.floats.pools import pool_call
from opwest.compiler.kernels.floats.tiles import Tile
from opwest.compiler.kernels.mve.float_depthwise import columns_parts
from opwest.compiler.kernels.mve.float_elements import VectorRun
from opwest.compiler.kernels.mve.float_pools import VectorPool
from opwest.compiler.kernels.mve.float_tiles import LANES, VectorTile

SUMS = 4
"""The vectors of sums in a tile."""


def parts(pixels: int, channels: int) -> list[tuple[int, Tile]]:
    """Return the division of channels: tiles of whole vectors, the last one in part."""
    wide = LANES * max(1, SUMS // pixels)
    vectors = -(-channels // LANES)
    rest = vectors * LANES % wide
    whole = vectors * LANES - rest
    found: list[tuple[int, Tile]] = []
    if whole:
        found.append((min(whole, channels), VectorTile(pixels, wide)))
    if rest:
        found.append((channels - whole, VectorTile(pixels, rest)))
    return found


COPY = naked(
    "mve_copy_bytes",
    ("int8_t *to", "const int8_t *from", "int32_t size"),
    (
        "push {r4, lr}",
        "wlstp.8 lr, r2, 2f",
        "add r2, r0, r2",
        "1: vldrb.8 q0, [r1], #16",
        "vstrb.8 q0, [r0], #16",
        "letp lr, 1b",
        "mov r0, r2",
        "2: pop {r4, pc}",
    ),
    "int8_t *",
)
FILL = naked(
    "mve_fill_bytes",
    ("int8_t *to", "int32_t value", "int32_t size"),
    (
        "push {r4, lr}",
        "vdup.8 q0, r1",
        "wlstp.8 lr, r2, 2f",
        "add r2, r0, r2",
        "1: vstrb.8 q0, [r0], #16",
        "letp lr, 1b",
        "mov r0, r2",
        "2: pop {r4, pc}",
    ),
    "int8_t *",
)
ENGINE = Engine(parts, ("mve_copy_bytes", "mve_fill_bytes"), (COPY, FILL))


@emits(Convolution, "mve-float", has_pitch=True, is_exact=False)
def convolution(operation: Convolution) -> Call | None:
    """Return the call; None for other dtypes."""
    return convolution_call(operation, ENGINE)


@emits(Depthwise, "mve-float", has_pitch=True, is_exact=False)
def depthwise(operation: Depthwise) -> Call | None:
    """Return the call; None for other dtypes, several results of each channel, and wide windows."""
    return depthwise_call(operation, ENGINE, columns_parts)


@emits(MatrixProduct, "mve-float", is_exact=False)
def product(operation: MatrixProduct) -> Call | None:
    """Return the call; None for other dtypes."""
    return product_call(operation, ENGINE)


@emits(Elementwise, "mve-float", has_pitch=True, is_exact=False)
def elements(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes, and short runs."""
    return elements_call(operation, VectorRun)


@emits(Pool, "mve-float", has_pitch=True, is_exact=False)
def pool(operation: Pool) -> Call | None:
    """Return the call; None for other functions and dtypes, and windows outside of the image."""
    return pool_call(operation, VectorPool)
