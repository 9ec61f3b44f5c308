# SPDX-License-Identifier: Apache-2.0
"""Variants for Armv7-M without the DSP extension (Cortex-M3): multiplications of 32 bits that compute two products.

The variants of an operation are registered with the fastest in modelled cycles first: `bytewise` imports `convolution`.
"""

from opwest.compiler.kernels.mla import bytewise, convolution, depthwise, elements

__all__ = ["bytewise", "convolution", "depthwise", "elements"]
