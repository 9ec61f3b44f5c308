# SPDX-License-Identifier: Apache-2.0
"""Operations as portable C functions: shapes and numbers folded. `registry.py` has the variants."""

from opwest.compiler.emission import (
    convolution,
    depthwise,
    elementwise,
    expressions,
    function,
    hybrid,
    lstm,
    lstm_integer,
    matrix,
    movement,
    rows,
)

__all__ = [
    "convolution",
    "depthwise",
    "elementwise",
    "expressions",
    "function",
    "hybrid",
    "lstm",
    "lstm_integer",
    "matrix",
    "movement",
    "rows",
]
