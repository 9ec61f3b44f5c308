# SPDX-License-Identifier: Apache-2.0
"""Random pools, sums and products of int8 values as programs of one operation, and their results by numpy."""

import numpy as np
from kernels import reference
from opwest.importers.models.ir.elements import Product
from opwest.importers.models.ir.functions import AddQuantised
from opwest.importers.models.ir.operations import Elementwise, Pool
from opwest.importers.models.operators.arithmetic import AddNumbers, ProductNumbers
from opwest.importers.models.operators.fixed_point import Rounding, quantize_multiplier, scaled
from opwest.tuning.random_layers import program, value, window


def _zero(random):
    return int(random.choice([-128, 127, 0, random.integers(-128, 128)]))


def _limits(random, zero):
    kind = random.integers(0, 3)
    if kind == 0:
        return max(-128, zero), 127
    if kind == 1:
        return max(-128, zero), int(min(127, zero + random.integers(1, 200)))
    return -128, 127


def _shape(random):
    return tuple(int(one) for one in random.integers(2, 9, int(random.integers(2, 5))))


def addition(random, shape=None, dtype="int8"):
    """Sum or difference of two arrays of equal shapes."""
    shape = shape or _shape(random)
    scales = random.uniform(0.001, 0.1, 3) if random.random() < 0.7 else 10.0 ** random.uniform(-4, 1, 3)
    twice = 2 * max(scales[:2])
    zero = _zero(random)
    numbers = AddNumbers(
        20,
        (_zero(random), _zero(random)),
        (quantize_multiplier(scales[0] / twice), quantize_multiplier(scales[1] / twice)),
        quantize_multiplier(twice / ((1 << 20) * scales[2])),
        zero,
        *_limits(random, zero),
    )
    operands = (value("input", dtype, shape), value("input", dtype, shape))
    function = AddQuantised(numbers, bool(random.integers(0, 4) == 0))
    return program(Elementwise("layer", operands, (value("output", dtype, shape),), function))


def product(random, shape=None, dtype="int8"):
    """Product of two arrays of equal shapes."""
    shape = shape or _shape(random)
    zero = _zero(random)
    real = random.uniform(0.001, 0.05) if random.random() < 0.8 else 10.0 ** random.uniform(-8, 1)
    limits = _limits(random, zero)
    numbers = ProductNumbers((_zero(random), _zero(random)), quantize_multiplier(real), zero, *limits)
    operands = (value("input", dtype, shape), value("input", dtype, shape))
    return program(Elementwise("layer", operands, (value("output", dtype, shape),), Product(numbers)))


def pool(random, shape=None, size=None, kind=None, dtype="int8", **keys):
    """Average or maximum of windows; some of them are the whole image."""
    if shape is None:
        shape = (int(random.choice([1, 1, 2])), *(int(one) for one in random.integers(2, 11, 2)))
        shape = (*shape, int(random.choice([1, 2, 3, 4, 5, 8, 16, 19])))
    if size is None:
        size = shape[1:3] if random.random() < 0.3 else tuple(int(one) for one in random.integers(1, 5, 2))
    size = tuple(min(one, limit) for one, limit in zip(size, shape[1:3], strict=True))
    places = window(random, shape[1:3], size, **keys)
    data = value("input", dtype, shape)
    result = value("output", dtype, (shape[0], *places.result, shape[3]))
    limits = (None, None) if random.random() < 0.5 else _limits(random, _zero(random))
    kind = kind or str(random.choice(["average", "maximum"]))
    return program(Pool("layer", (data,), (result,), kind, places, *limits))


def results_of(operation, *data):
    """Return the results of an operation of this module or of `reference`."""
    if isinstance(operation, Pool):
        return _pooled(operation, data[0].astype(np.int64))
    if isinstance(operation, Elementwise):
        return _element(operation.function, *(one.astype(np.int64) for one in data))
    return reference.results_of(operation, *data)


def _element(function, one, other):
    numbers = function.numbers
    one, other = one - numbers.zeros[0], other - numbers.zeros[1]
    if isinstance(function, Product):
        total, by = one * other, numbers.multiplier
    else:
        parts = [
            scaled(part << numbers.left_shift, by.fixed, by.shift, Rounding.TWICE)
            for part, by in zip((one, other), numbers.multipliers, strict=True)
        ]
        total, by = parts[0] - parts[1] if function.subtract else parts[0] + parts[1], numbers.result
    return np.clip(scaled(total, by.fixed, by.shift, Rounding.TWICE) + numbers.zero, numbers.low, numbers.high).astype(
        np.int8
    )


def _pooled(operation, data):
    window, result = operation.window, np.zeros(operation.results[0].shape, np.int64)
    for y in range(window.result[0]):
        for x in range(window.result[1]):
            rows, columns = (
                [p for p in (start + k * step for k in range(size)) if 0 <= p < limit]
                for start, step, size, limit in zip(
                    (y * window.stride[0] - window.before[0], x * window.stride[1] - window.before[1]),
                    window.dilation,
                    window.size,
                    data.shape[1:3],
                    strict=True,
                )
            )
            part = data[:, rows][:, :, columns]
            if operation.kind == "maximum":
                result[:, y, x] = part.max(axis=(1, 2))
            else:
                count = len(rows) * len(columns)
                total = part.sum(axis=(1, 2))
                result[:, y, x] = np.sign(total) * ((np.abs(total) + count // 2) // count)
    low = -128 if operation.low is None else operation.low
    return np.clip(result, low, 127 if operation.high is None else operation.high).astype(np.int8)
