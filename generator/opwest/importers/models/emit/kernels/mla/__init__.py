# SPDX-License-Identifier: Apache-2.0
"""Variants for Armv7-M without the DSP extension (Cortex-M3): multiplications of 32 bits that compute two products.

The fastest in modelled cycles is registered first.
"""

from opwest.importers.models.emit.kernels.mla import convolution, depthwise, bytes  # isort: skip - the order of the variants

__all__ = ["bytes", "convolution", "depthwise"]
