# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M52, M55, M85).

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: floating-point instructions, which MVE can lack, without a guard and the same function in C.
"""

# The order of imports is that of the variants of an operation: the faster one first.
from opwest.compiler.kernels.mve import (
    convolution,
    dense,
    elements,
    floats,
    hybrid,
    long_products,
    long_sums,
    matrices,
    tiles,
    transposed,
    widened,
)

__all__ = [
    "convolution",
    "dense",
    "elements",
    "floats",
    "hybrid",
    "long_products",
    "long_sums",
    "matrices",
    "tiles",
    "transposed",
    "widened",
]
