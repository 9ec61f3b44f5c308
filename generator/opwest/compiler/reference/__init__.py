# SPDX-License-Identifier: Apache-2.0
"""A numpy interpreter of graphs, one function per operator: folds constants, computes vectors, tests the emitters.

It shares the numbers of `operators/` with the emitters, and no code: it interprets the graph as read.
"""

from opwest.compiler.reference import elementwise, layers, movement, normalisation, onnx, recurrent

__all__ = ["elementwise", "layers", "movement", "normalisation", "onnx", "recurrent"]
