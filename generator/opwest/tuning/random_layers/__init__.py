# SPDX-License-Identifier: Apache-2.0
"""Random layers as programs of one operation, with the numbers that break kernels.

A new kind of layer is a function with `makes` in a module of this package, which is imported here.
"""

from opwest.tuning.random_layers.curves import curve
from opwest.tuning.random_layers.elements import add, elements, multiply
from opwest.tuning.random_layers.layers import convolution, convolution_sum, dense, depthwise, pool
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
from opwest.tuning.random_layers.tables import table

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
    "elements",
    "hybrid_lstm",
    "inputs_of",
    "integer_lstm",
    "makes",
    "multiply",
    "pool",
    "program",
    "svdf",
    "table",
    "value",
    "weights_of",
    "window",
]
