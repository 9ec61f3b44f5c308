# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M55, M85)."""

# The order of imports is that of the variants of an operation: the faster one first.
from opwest.compiler.kernels.mve import convolution, dense, elements, long_sums, tiles, widened

__all__ = ["convolution", "dense", "elements", "long_sums", "tiles", "widened"]
