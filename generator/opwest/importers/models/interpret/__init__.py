# SPDX-License-Identifier: Apache-2.0
"""A numpy interpreter of graphs, one function per operator: folds constants, computes vectors, tests the emitters.

It shares the numbers of `operators/` with the emitters, and no code: it interprets the graph as read.
"""

from opwest.importers.models.interpret import (
    arithmetic,
    comparison,
    conversion,
    indexing,
    layers,
    lstm,
    movement,
    normalisation,
    onnx,
    pooling,
    products,
    recurrent,
    reduction,
    resizing,
    slices,
    unary,
    user,
)

__all__ = [
    "arithmetic",
    "comparison",
    "conversion",
    "indexing",
    "layers",
    "lstm",
    "movement",
    "normalisation",
    "onnx",
    "pooling",
    "products",
    "recurrent",
    "reduction",
    "resizing",
    "slices",
    "unary",
    "user",
]
