# SPDX-License-Identifier: Apache-2.0
"""The meaning of a graph: each operator as operations with folded numbers, and the passes over programs.

Enters: a checked graph. Leaves: a program. Never: C, or the choice of a variant.
"""

from opwest.compiler.lowering import elementwise, layers, movement, rows, signal, slices

__all__ = ["elementwise", "layers", "movement", "rows", "signal", "slices"]
