# SPDX-License-Identifier: Apache-2.0
"""Variants for Armv7-M without the DSP extension (Cortex-M3): multiplications of 32 bits that compute two products.

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: instructions that Armv7-M lacks.
The variants of an operation are registered with the fastest in modelled cycles first: `bytewise` imports `convolution`.
"""

from opwest.compiler.kernels.mla import bytewise, convolution, depthwise, elements

__all__ = ["bytewise", "convolution", "depthwise", "elements"]
