# SPDX-License-Identifier: Apache-2.0
"""A numpy interpreter of programs: what each operation does, for the proof of the passes.

It shares rules of arithmetic with `interpret/`, which runs the graph as it was read. The numbers of an operation, its
loops, and the memory of its values are those that lowering and the passes made.
"""

from opwest.compiler.execution import elements, layers, movement, rows, stripes

__all__ = ["elements", "layers", "movement", "rows", "stripes"]
