# SPDX-License-Identifier: Apache-2.0
"""Variants in C for every processor of 32 bits: one multiplication computes two products in lanes of 16 bits.

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: instructions of a class of processors, assembly.
"""

# The order of imports is that of the variants of an operation: the faster one first.
from opwest.compiler.kernels.lanes import columns, convolution, dense

__all__ = ["columns", "convolution", "dense"]
