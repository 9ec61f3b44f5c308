# SPDX-License-Identifier: Apache-2.0
"""Variants for Armv7-M without the DSP extension (Cortex-M3): multiplications of 32 bits that compute two products.

The fastest in modelled cycles is registered first.
"""

from opwest.importers.models.emit.kernels.mla import convolution, depthwise, sums
from opwest.importers.models.emit.kernels.mla import bytes as bytes_  # isort: skip - after `convolution`

__all__ = ["bytes_", "convolution", "depthwise", "sums"]
