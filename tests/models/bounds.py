# SPDX-License-Identifier: Apache-2.0
"""The bound of float32 results of each operator: |found - expected| <= bound * max(1, |expected|)."""

DEFAULT = 1e-6
"""For operators without rounding other than that of one IEEE operation per element."""
BOUNDS = {
    "CONV_2D": 1e-5,
    "DEPTHWISE_CONV_2D": 1e-5,
    "FULLY_CONNECTED": 1e-5,
    "AVERAGE_POOL_2D": 2e-6,
    "SOFTMAX": 2e-6,
    # Functions of the C library, or LiteRT's approximations of them.
    "LOGISTIC": 2e-6,
    "TANH": 2e-6,
    "ELU": 2e-6,
    "EXP": 2e-6,
    "RSQRT": 2e-6,
    "GELU": 1e-5,
    "POW": 1e-5,
    "TRANSPOSE_CONV": 1e-5,
    "BATCH_MATMUL": 1e-5,
    "CONV_2D hybrid": 2e-6,
    "DEPTHWISE_CONV_2D hybrid": 2e-6,
    "FULLY_CONNECTED hybrid": 2e-6,
    # LiteRT adds every product as float32; the sums here are integers.
    "TRANSPOSE_CONV hybrid": 1e-4,
    "BATCH_MATMUL hybrid": 2e-6,
    "SVDF": 1e-5,
    "SVDF hybrid": 1e-5,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": 1e-5,
    "UNIDIRECTIONAL_SEQUENCE_LSTM hybrid": 1e-5,
    "MEAN": 1e-5,
    "SUM": 1e-5,
    "REDUCE_PROD": 1e-5,
    "CUMSUM": 1e-5,
    "L2_POOL_2D": 2e-6,
    "LOG_SOFTMAX": 2e-6,
    "L2_NORMALIZATION": 2e-6,
}


def bound_of(kind):
    return BOUNDS.get(kind, DEFAULT)
