# SPDX-License-Identifier: Apache-2.0
"""A numpy interpreter of programs, for the proof of the passes.

Enters: a program and arrays. Leaves: the arrays of its outputs, from the numbers, loops and memory that lowering and
the passes made. Never: C, or rules of arithmetic of its own: those of compiler/reference/ are called.
"""

from opwest.compiler.execution import elements, layers, movement, signal, stripes  # noqa: F401 - fills the table
