# SPDX-License-Identifier: Apache-2.0
"""The operators: for each family, the rows of the specification and the numbers of its arithmetic rules.

Every module names the file of the reference implementation that it follows.
"""

from opwest.importers.models.operators import (
    arithmetic,
    blocks,
    comparison,
    conversion,
    filling,
    indexing,
    layers,
    lstm,
    movement,
    normalisation,
    onnx,
    padding,
    pooling,
    products,
    recurrent,
    reduction,
    resizing,
    slices,
    transposed,
    unary,
    user,
)

__all__ = [
    "arithmetic",
    "blocks",
    "comparison",
    "conversion",
    "filling",
    "indexing",
    "layers",
    "lstm",
    "movement",
    "normalisation",
    "onnx",
    "padding",
    "pooling",
    "products",
    "recurrent",
    "reduction",
    "resizing",
    "slices",
    "transposed",
    "unary",
    "user",
]
