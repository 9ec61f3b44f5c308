# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M55, M85)."""

from opwest.importers.models.emit.kernels.mve import convolution, dense, elements, long_sums, pools, tiles, widened

__all__ = ["convolution", "dense", "elements", "long_sums", "pools", "tiles", "widened"]
