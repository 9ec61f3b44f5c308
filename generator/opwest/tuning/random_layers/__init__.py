# SPDX-License-Identifier: Apache-2.0
"""Random layers as programs of one operation, with the numbers that break kernels.

A new kind of layer is a function with `makes` in a module of this package, which is imported here.
"""

from opwest.tuning.random_layers.conversions import dequantised, quantised
from opwest.tuning.random_layers.curves import curve
from opwest.tuning.random_layers.elements import add, elements, multiply
from opwest.tuning.random_layers.floats import (
    float_convolution,
    float_dense,
    float_depthwise,
    float_elements,
    float_pool,
    float_product,
)
from opwest.tuning.random_layers.layers import convolution, convolution_sum, dense, depthwise, nibble_convolution, pool
from opwest.tuning.random_layers.matrices import (
    grouped_convolution,
    hybrid_convolution,
    hybrid_product,
    matrix_product,
    transposed_convolution,
)
from opwest.tuning.random_layers.nibbles import nibbles
from opwest.tuning.random_layers.numbers import (
    KINDS,
    MAKERS,
    Maker,
    Random,
    inputs_of,
    makes,
    program,
    value,
    weights_of,
    window,
)
from opwest.tuning.random_layers.recurrent import hybrid_lstm, integer_lstm, svdf
from opwest.tuning.random_layers.rows import (
    extremes,
    interpolation,
    pairs,
    reduction,
    rescaled,
    shifted,
    slopes,
    softmax,
)
from opwest.tuning.random_layers.tables import samples, sigmoid, table
from opwest.tuning.random_layers.windows import wide_depthwise, wide_pool

__all__ = [
    "KINDS",
    "MAKERS",
    "Maker",
    "Random",
    "add",
    "convolution",
    "convolution_sum",
    "curve",
    "dense",
    "depthwise",
    "dequantised",
    "elements",
    "extremes",
    "float_convolution",
    "float_dense",
    "float_depthwise",
    "float_elements",
    "float_pool",
    "float_product",
    "grouped_convolution",
    "hybrid_convolution",
    "hybrid_lstm",
    "hybrid_product",
    "inputs_of",
    "integer_lstm",
    "interpolation",
    "makes",
    "matrix_product",
    "multiply",
    "nibble_convolution",
    "nibbles",
    "pairs",
    "pool",
    "program",
    "quantised",
    "reduction",
    "rescaled",
    "samples",
    "shifted",
    "sigmoid",
    "slopes",
    "softmax",
    "svdf",
    "table",
    "transposed_convolution",
    "value",
    "weights_of",
    "wide_depthwise",
    "wide_pool",
    "window",
]
