# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M55, M85)."""

from opwest.compiler.kernels.mve import convolution, dense, elements, tiles, widened

__all__ = ["convolution", "dense", "elements", "tiles", "widened"]
