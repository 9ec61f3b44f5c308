# SPDX-License-Identifier: Apache-2.0
"""Operations as C functions: shapes and numbers folded. One module per form of loop; `registry.py` has the variants."""

from opwest.importers.models.emit import (
    conversion_expressions,
    convolution,
    copy,
    depthwise,
    elementwise,
    hybrid,
    indexing,
    interpolation,
    movement,
    normalisation,
    onnx,
    plain_expressions,
    pool,
    products,
    quantized_expressions,
    recurrent,
    reduction,
    search,
)

__all__ = [
    "conversion_expressions",
    "convolution",
    "copy",
    "depthwise",
    "elementwise",
    "hybrid",
    "indexing",
    "interpolation",
    "movement",
    "normalisation",
    "onnx",
    "plain_expressions",
    "pool",
    "products",
    "quantized_expressions",
    "recurrent",
    "reduction",
    "search",
]
