# SPDX-License-Identifier: Apache-2.0
"""Random layers of float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.ir.elements import Arithmetic
from opwest.compiler.ir.operations import Clamp, Convolution, Depthwise, Elementwise, MatrixProduct, Pool
from opwest.compiler.ir.program import Program
from opwest.compiler.semantics.windows import Window
from opwest.tuning.random_layers.numbers import Random, makes, program, value, window

LIMITS = ((None, None), (None, None), (0.0, None), (0.0, None), (0.0, 6.0), (-1.0, 1.0), (None, 0.5))


def _limits(random: Random) -> tuple[float | None, float | None]:
    return LIMITS[int(random.integers(0, len(LIMITS)))]


def _weights(random: Random, shape: tuple[int, ...]) -> Any:
    """Return weights of any magnitude; some are 0, some -0."""
    weights = random.normal(0, float(random.choice([1e-3, 0.1, 1.0, 100.0])), shape)
    return (weights * (random.random(shape) < float(random.choice([0.3, 1.0, 1.0])))).astype(np.float32)


def _bias(random: Random, count: int) -> Any:
    """Return biases, or None."""
    return None if random.random() < 0.2 else _weights(random, (count,))


@makes("float32")
def float_convolution(
    random: Random,
    shape: Any = None,
    size: Any = None,
    results: int | None = None,
    groups: int | None = None,
    limits: Any = None,
    dtype: str = "float32",
    **keys: Any,
) -> Program:
    """data [n,h,w,c]."""
    groups = groups or int(random.choice([1, 1, 1, 1, 2, 3]) if shape is None else 1)
    shape = shape or (
        int(random.choice([1, 1, 1, 2])),
        *(int(extent) for extent in random.integers(4, 12, 2)),
        groups * int(random.choice([1, 2, 3, 4, 5, 8, 12, 17])),
    )
    size = size or ((1, 1) if random.random() < 0.35 else (int(random.integers(1, 5)), int(random.integers(1, 5))))
    results = results or groups * int(random.choice([1, 2, 3, 4, 5, 7, 8, 12, 19]))
    if "dilation" not in keys and random.random() < 0.2 and max(size) < 4:
        keys["dilation"] = (int(random.integers(1, 3)), int(random.integers(1, 3)))
        keys["same"] = True
    weights = _weights(random, (results, *size, shape[3] // groups))
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, results))
    finish = Clamp(*(limits or _limits(random)))
    bias = _bias(random, results)
    return program(Convolution("layer", (data,), (result,), places, groups, weights, bias, 0, 0, finish))


@makes("float32")
def float_dense(
    random: Random,
    length: int | None = None,
    results: int | None = None,
    rows: int | None = None,
    limits: Any = None,
    dtype: str = "float32",
) -> Program:
    """data [rows,1,1,length]."""
    length = length or int(random.choice([1, 3, 8, 10, 25, 64, 250]))
    results = results or int(random.choice([1, 2, 3, 4, 8, 10, 12, 33]))
    rows = rows or int(random.choice([1, 1, 1, 2, 5, 9]))
    weights = _weights(random, (results, 1, 1, length))
    places = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    data, result = value("input", dtype, (rows, 1, 1, length)), value("output", dtype, (rows, results))
    finish, bias = Clamp(*(limits or _limits(random))), _bias(random, results)
    return program(Convolution("layer", (data,), (result,), places, 1, weights, bias, 0, 0, finish))


@makes("float32")
def float_depthwise(
    random: Random,
    shape: Any = None,
    size: Any = None,
    multiplier: int | None = None,
    limits: Any = None,
    dtype: str = "float32",
    **keys: Any,
) -> Program:
    """data [n,h,w,c]."""
    shape = shape or (
        int(random.choice([1, 1, 1, 2])),
        *(int(extent) for extent in random.integers(3, 14, 2)),
        int(random.choice([1, 2, 3, 4, 5, 8, 12, 16, 17, 30])),
    )
    size = size or ((3, 3) if random.random() < 0.5 else (int(random.integers(1, 6)), int(random.integers(1, 6))))
    size = tuple(min(extent, limit) for extent, limit in zip(size, shape[1:3], strict=True))
    results = shape[3] * (multiplier or int(random.choice([1, 1, 1, 1, 2])))
    if "dilation" not in keys and random.random() < 0.2 and max(size) < 4:
        keys["dilation"] = (int(random.integers(1, 3)), int(random.integers(1, 4)))
        keys["same"] = True
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, results))
    weights, bias = _weights(random, (*size, results)), _bias(random, results)
    finish = Clamp(*(limits or _limits(random)))
    return program(Depthwise("layer", (data,), (result,), places, weights, bias, 0, 0, finish))


@makes("float32")
def float_product(
    random: Random,
    rows: int | None = None,
    depth: int | None = None,
    columns: int | None = None,
    swaps: tuple[bool, bool] | None = None,
    dtype: str = "float32",
) -> Program:
    """A product of matrices; batches are broadcast."""
    rows, columns = (number or int(random.choice([1, 2, 3, 4, 5, 7, 8, 13, 18])) for number in (rows, columns))
    depth = depth or int(random.choice([1, 2, 3, 4, 5, 9, 16, 31]))
    swaps = swaps or (bool(random.integers(0, 2)), bool(random.integers(0, 2)))
    batches = random.choice([0, 0, 1, 2, 3])
    one, other, joined = (((), (), ()), ((2,), (2,), (2,)), ((3,), (1,), (3,)), ((2, 1), (1, 3), (2, 3)))[
        int(batches) % 4
    ]
    a = value("input", dtype, (*one, *((depth, rows) if swaps[0] else (rows, depth))))
    b = value("input", dtype, (*other, *((columns, depth) if swaps[1] else (depth, columns))))
    bias = [value("input", dtype, (columns,))] if random.random() < 0.3 else []
    result, finish = value("output", dtype, (*joined, rows, columns)), Clamp(*_limits(random))
    return program(MatrixProduct("layer", (a, b, *bias), (result,), swaps, (0, 0), finish))


SHAPES = (
    ((37,), (37,), (37,)),
    ((1, 3, 5, 8), (1, 3, 5, 8), (1, 3, 5, 8)),
    ((2, 3, 9), (9,), (2, 3, 9)),
    ((2, 1, 16), (2, 4, 16), (2, 4, 16)),
    ((4, 6), (1,), (4, 6)),
    ((1,), (99,), (99,)),
    ((3, 5, 1), (3, 5, 7), (3, 5, 7)),
    ((5, 4), (5, 1), (5, 4)),
)
"""The shapes of operands and results of functions of elements."""


@makes("float32")
def float_elements(
    random: Random,
    size: int | None = None,
    operator: str | None = None,
    limits: Any = None,
    shape: Any = None,
    dtype: str = "float32",
) -> Program:
    """The sum, difference or product of two tensors, which are broadcast."""
    size = size or int(random.choice([0, 0, 1, 4, 8, 15, 64, 99]))
    shapes = SHAPES[int(random.integers(0, len(SHAPES)))] if size == 0 else ((size,),) * 3
    shapes = shapes if shape is None else (shape,) * 3
    one, other = (value("input", dtype, shape) for shape in shapes[:2])
    function = Arithmetic(operator or str(random.choice(["+", "-", "*"])), *(limits or _limits(random)))
    return program(Elementwise("layer", (one, other), (value("output", dtype, shapes[2]),), function))


@makes("float32")
def float_pool(
    random: Random,
    shape: Any = None,
    size: Any = None,
    kind: str | None = None,
    dtype: str = "float32",
    **keys: Any,
) -> Program:
    """An average or the maximum of windows of data [n,h,w,c]."""
    shape = shape or (
        int(random.choice([1, 1, 2])),
        *(int(extent) for extent in random.integers(2, 10, 2)),
        int(random.choice([1, 3, 4, 8, 15, 16, 17])),
    )
    size = size or tuple(int(random.integers(1, min(6, limit) + 1)) for limit in shape[1:3])
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, shape[3]))
    kind = kind or str(random.choice(["average", "maximum"]))
    return program(Pool("layer", (data,), (result,), kind, places, *_limits(random)))
