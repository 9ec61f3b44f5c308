# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M52, M55, M85).

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: floating-point instructions, which MVE can lack, without a guard and the same function in C.
"""

# The order of imports is that of the variants of an operation: the faster one first.
from opwest.compiler.kernels.mve import (
    convolution,
    curves,
    dense,
    elements,
    filters,
    floats,
    hybrid,
    interpolation,
    long_products,
    long_sums,
    lstm,
    lstm_hybrid,
    matrices,
    pools,
    reductions,
    softmax,
    tiles,
    tiles_of_words,
    transposed,
    widened,
)

__all__ = [
    "convolution",
    "curves",
    "dense",
    "elements",
    "filters",
    "floats",
    "hybrid",
    "interpolation",
    "long_products",
    "long_sums",
    "lstm",
    "lstm_hybrid",
    "matrices",
    "pools",
    "reductions",
    "softmax",
    "tiles",
    "tiles_of_words",
    "transposed",
    "widened",
]
