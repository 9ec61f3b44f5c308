# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M52, M55, M85).

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: floating-point instructions without a condition on the extension, which can lack them.
"""

# The order of imports is that of the variants of an operation: the faster one first.
from opwest.compiler.kernels.mve import (
    convolution,
    dense,
    elements,
    interpolation,
    long_sums,
    pools,
    reductions,
    softmax,
    tiles,
    widened,
)

__all__ = [
    "convolution",
    "dense",
    "elements",
    "interpolation",
    "long_sums",
    "pools",
    "reductions",
    "softmax",
    "tiles",
    "widened",
]
