# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the DSP extension (Cortex-M4, M7, M33).

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: registers of the FPU without a guard and the same function in C.
"""

from opwest.compiler.kernels.dsp import (
    convolution,
    dense,
    depthwise,
    elements,
    filters,
    floats,
    hybrid,
    interpolation,
    lstm,
    lstm_hybrid,
    matrix,
    matrix_wide,
    nibbles,
    reductions,
    softmax,
    transposed,
    wide_softmax,
    wide_unary,
)

__all__ = [
    "convolution",
    "dense",
    "depthwise",
    "elements",
    "filters",
    "floats",
    "hybrid",
    "interpolation",
    "lstm",
    "lstm_hybrid",
    "matrix",
    "matrix_wide",
    "nibbles",
    "reductions",
    "softmax",
    "transposed",
    "wide_softmax",
    "wide_unary",
]
