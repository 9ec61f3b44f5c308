# SPDX-License-Identifier: Apache-2.0
"""Variants for RV32 with the vector extension 1.0: the profile for embedded processors, Zve32x, is enough.

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: floating-point and 64-bit vector instructions, which Zve32x lacks; a length of vector registers in a constant.

The firmware must enable the extension (the field VS of mstatus). Zephyr 4.2 does not, nor does it save the registers
of vectors: only one thread, and no interrupt, may use them.
"""

# The order of imports is that of the variants of an operation: the faster one first.
from opwest.compiler.kernels.rvv import channels, depthwise, elements, pools, products

__all__ = ["channels", "depthwise", "elements", "pools", "products"]
