# SPDX-License-Identifier: Apache-2.0
"""The meaning of a graph: each operator as operations with folded numbers. One module per family."""

from opwest.importers.models.lower import (
    arithmetic,
    comparison,
    conversion,
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
    "padding",
    "pooling",
    "products",
    "recurrent",
    "reduction",
    "slices",
    "unary",
    "user",
]
