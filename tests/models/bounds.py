# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a campaign, and the bounds of float results: |found - expected| <= bound * max(1, |expected|)."""

import numpy as np

DEFAULT = 1e-6
"""For operators without rounding other than that of one IEEE operation per element."""
BOUNDS = {
    "AVERAGE_POOL_2D": 2e-6, "L2_POOL_2D": 2e-6, "SOFTMAX": 2e-6, "LOG_SOFTMAX": 2e-6, "L2_NORMALIZATION": 2e-6,
    # Functions of the C library, or LiteRT's approximations of them.
    "LOGISTIC": 2e-6, "TANH": 2e-6, "ELU": 2e-6, "EXP": 2e-6, "RSQRT": 2e-6, "GELU": 1e-5, "POW": 1e-5, "ATAN2": 2e-6,
    # Sums of products, in another order.
    "CONV_2D": 1e-5, "DEPTHWISE_CONV_2D": 1e-5, "FULLY_CONNECTED": 1e-5, "TRANSPOSE_CONV": 1e-5, "BATCH_MATMUL": 1e-5,
    "SVDF": 1e-5, "UNIDIRECTIONAL_SEQUENCE_LSTM": 1e-5, "MEAN": 1e-5, "SUM": 1e-5, "REDUCE_PROD": 1e-5, "CUMSUM": 1e-5,
    "CONV_2D hybrid": 2e-6, "DEPTHWISE_CONV_2D hybrid": 2e-6, "FULLY_CONNECTED hybrid": 2e-6,
    "BATCH_MATMUL hybrid": 2e-6, "SVDF hybrid": 1e-5, "UNIDIRECTIONAL_SEQUENCE_LSTM hybrid": 1e-5,
    # LiteRT adds every product as float32; the sums here are integers.
    "TRANSPOSE_CONV hybrid": 1e-4,
}  # fmt: skip
ONNX = {
    # Results are equal: comparisons, indices, moved elements, integers.
    "Less": 0, "Greater": 0, "Equal": 0, "Xor": 0, "Not": 0, "Abs": 0, "Neg": 0, "Floor": 0, "Ceil": 0, "Round": 0,
    "Relu": 0, "Sign": 0, "Min": 0, "Max": 0, "ReduceMax": 0, "ReduceMin": 0, "ArgMax": 0, "TopK": 0, "MaxPool": 0,
    "GlobalMaxPool": 0, "Transpose": 0, "Squeeze": 0, "Concat": 0, "Split": 0, "Slice": 0, "Gather": 0, "Pad": 0,
    "Expand": 0, "Tile": 0, "DepthToSpace": 0, "GatherElements": 0, "ScatterND": 0, "ScatterElements": 0, "Trilu": 0,
    "IsNaN": 0, "IsInf": 0, "ThresholdedRelu": 0, "MatMulInteger": 0, "ConvInteger": 0,
    # One or a few IEEE operations.
    "Add": 1e-6, "Sub": 1e-6, "Mul": 1e-6, "Div": 1e-6, "Mean": 1e-6, "LeakyRelu": 1e-6, "HardSigmoid": 1e-6,
    "HardSwish": 1e-6, "Softsign": 1e-6, "Reciprocal": 1e-6, "PRelu": 1e-6,
    # Functions of the C library against onnxruntime's approximations.
    "Exp": 2e-6, "Sin": 2e-6, "Cos": 2e-6, "Tanh": 2e-6, "Sigmoid": 2e-6, "Erf": 2e-6, "Elu": 2e-6, "Selu": 5e-6,
    "Celu": 2e-6, "Softplus": 2e-6, "Mish": 5e-6, "Gelu": 5e-6, "Swish": 5e-6, "Pow": 1e-5,
    "Tan": 1e-5, "Asin": 2e-6, "Acos": 2e-6, "Atan": 2e-6, "Sinh": 5e-6, "Cosh": 5e-6, "Asinh": 2e-6, "Acosh": 2e-6,
    "Atanh": 5e-6,
    # Sums of products, in another order.
    "Conv": 2e-5, "ConvTranspose": 2e-5, "Gemm": 2e-5, "MatMul": 2e-5, "Einsum": 2e-5, "AveragePool": 1e-5,
    "GlobalAveragePool": 1e-5, "Resize": 1e-5, "ReduceMean": 1e-5, "ReduceSum": 1e-5, "ReduceProd": 1e-5,
    "ReduceL1": 1e-5, "ReduceL2": 1e-5, "ReduceSumSquare": 1e-5, "ReduceLogSumExp": 1e-5, "LSTM": 1e-5, "GRU": 1e-5,
    "RNN": 1e-5, "DynamicQuantizeLSTM": 1e-5,
    # Quotients of sums.
    "Softmax": 1e-5, "LogSoftmax": 1e-5, "BatchNormalization": 1e-5, "LayerNormalization": 5e-5,
    "InstanceNormalization": 5e-5, "GroupNormalization": 5e-5, "LRN": 1e-5, "LpNormalization": 1e-5,
    # Whole networks.
    "network": 2e-5,
}  # fmt: skip
"""The bound of each operator of ONNX that a test runs, against onnxruntime."""


def bound_of(kind):
    return BOUNDS.get(kind, DEFAULT)


NUMBERS = ("files", "runs", "values", "wrong")
GREATEST = ("distance", "bound")
_found = {}


def distances(expected, found):
    """Return |found - expected|, of floats divided by max(1, |expected|); 0 for equal infinities and two NaN."""
    if expected.dtype.kind != "f":
        exact = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        return np.where(found == expected, 0, np.maximum(exact, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.abs(found.astype(np.float64) - expected) / np.maximum(1, np.abs(expected.astype(np.float64)))
        equal = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(equal, 0, np.where(np.isnan(far), np.inf, far))


def record(operator, dtype, oracle, **numbers):
    """Add numbers: files, runs, values, wrong; the greatest distance and bound of float results."""
    row = _found.setdefault((operator, dtype, oracle), dict.fromkeys(NUMBERS, 0) | dict.fromkeys(GREATEST, 0.0))
    for name, number in numbers.items():
        row[name] = max(row[name], float(number)) if name in GREATEST else row[name] + int(number)


def compare(key, expected, found, bound, where, steps=0.0):
    """Compare two arrays and record the result by `key`: operator, dtype, oracle; raise AssertionError if they differ.

    Integers differ by at most `steps`; floats by bound * max(1, |expected|) + steps.
    """
    far = distances(expected, found)
    is_float = expected.dtype.kind == "f"
    with np.errstate(invalid="ignore"):
        limit = bound + steps / np.maximum(1, np.abs(expected.astype(np.float64))) if is_float else steps
        wrong = ~((far <= limit) | (far == 0))
    floats = {"distance": far.max(initial=0), "bound": bound} if is_float else {}
    record(*key, values=far.size, wrong=wrong.sum(), **floats)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        values = f"{found[first]}, expected {expected[first]}"
        raise AssertionError(f"{where}: {wrong.sum()} of {wrong.size} wrong, first at {first}: {values}")


def take():
    """Return the rows since the last call: [operator, dtype, oracle, numbers]."""
    rows = [[*key, row] for key, row in _found.items()]
    _found.clear()
    return rows


def summary(rows):
    """Return the lines of a table with one row for each operator and oracle."""
    merged = {}
    for operator, dtype, oracle, numbers in rows:
        dtypes, whole = merged.setdefault((operator, oracle), ([], dict.fromkeys(numbers, 0)))
        if dtype not in dtypes:
            dtypes.append(dtype)
        for name, number in numbers.items():
            whole[name] = max(whole[name], number) if name in GREATEST else whole[name] + number
    lines = [("operator", "dtypes", "oracle", *NUMBERS, "float error", "bound")]
    for (operator, oracle), (dtypes, row) in sorted(merged.items()):
        floats = [f"{row[name]:.1e}" if row["bound"] else "-" for name in GREATEST]
        lines.append((operator, " ".join(dtypes), oracle, *(f"{row[name]:,}" for name in NUMBERS), *floats))
    total = [f"{sum(row[name] for _, row in merged.values()):,}" for name in NUMBERS]
    lines.append((f"{len({operator for operator, _ in merged})} operators", "", "", *total, "", ""))
    return aligned(lines)


def aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
