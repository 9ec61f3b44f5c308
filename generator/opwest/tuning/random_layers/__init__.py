# SPDX-License-Identifier: Apache-2.0
"""Random layers as programs of one operation, with the numbers that break kernels.

A new kind of layer is a function with `makes` in a module of this package, which is imported here.
"""

from opwest.tuning.random_layers.elements import add, elements, multiply
from opwest.tuning.random_layers.floats import (
    float_convolution,
    float_dense,
    float_depthwise,
    float_elements,
    float_pool,
    float_product,
)
from opwest.tuning.random_layers.layers import convolution, convolution_sum, dense, depthwise, nibbles, pool
from opwest.tuning.random_layers.matrices import (
    grouped_convolution,
    hybrid_convolution,
    hybrid_product,
    matrix_product,
    transposed_convolution,
)
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

__all__ = [
    "KINDS",
    "MAKERS",
    "Maker",
    "Random",
    "add",
    "convolution",
    "convolution_sum",
    "dense",
    "depthwise",
    "elements",
    "float_convolution",
    "float_dense",
    "float_depthwise",
    "float_elements",
    "float_pool",
    "float_product",
    "grouped_convolution",
    "hybrid_convolution",
    "hybrid_product",
    "inputs_of",
    "makes",
    "matrix_product",
    "multiply",
    "nibbles",
    "pool",
    "program",
    "transposed_convolution",
    "value",
    "weights_of",
    "window",
]
