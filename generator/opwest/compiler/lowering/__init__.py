# SPDX-License-Identifier: Apache-2.0
"""The meaning of a graph: each operator as operations with folded numbers. One module per family."""

from opwest.compiler.lowering import elementwise, layers, movement, rows, slices

__all__ = ["elementwise", "layers", "movement", "rows", "slices"]
