# SPDX-License-Identifier: Apache-2.0
"""Random layers with weights, and pools."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Depthwise, Pool
from opwest.compiler.ir.program import Program
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding
from opwest.compiler.semantics.windows import Window
from opwest.tuning.random_layers.elements import elements
from opwest.tuning.random_layers.numbers import (
    KINDS,
    Random,
    bias_of,
    makes,
    numbers_of,
    program,
    random_limits,
    requantisation,
    value,
    weights_of,
    window,
    zero_point,
)


@makes("int8", "int16")
def convolution(
    random: Random,
    shape: Any = None,
    size: Any = None,
    results: int | None = None,
    kind: str | None = None,
    dtype: str = "int8",
    **keys: Any,
) -> Program:
    """data [n,h,w,c]; int8 or int16."""
    if shape is None:
        shape = (
            int(random.choice([1, 1, 1, 2])),
            int(random.integers(4, 12)),
            int(random.integers(5, 13)),
            int(random.choice([1, 2, 3, 4, 5, 8, 12, 16, 17, 33, 40])),
        )
    size = size or ((1, 1) if random.random() < 0.35 else (int(random.integers(1, 5)), int(random.integers(1, 6))))
    results = results or int(random.choice([1, 2, 3, 4, 5, 7, 8, 12, 16, 19]))
    if "dilation" not in keys and random.random() < 0.15 and max(size) < 4:
        keys["dilation"] = (int(random.integers(1, 3)), int(random.integers(1, 3)))
        keys["same"] = True
    weights = weights_of(random, (results, *size, shape[3]))
    bias, zero, finish = numbers_of(random, weights, kind, dtype)
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, results))
    return program(Convolution("layer", (data,), (result,), places, 1, weights, bias, zero, 0, finish))


@makes("int8", "int16")
def dense(
    random: Random,
    length: int | None = None,
    results: int | None = None,
    rows: int | None = None,
    kind: str | None = None,
    dtype: str = "int8",
    rounding: Rounding | None = None,
) -> Program:
    """data [rows,1,1,length]."""
    length = length or int(random.choice([1, 3, 8, 10, 16, 25, 64, 128, 250, 640]))
    results = results or int(random.choice([1, 2, 3, 4, 8, 10, 12, 32, 33]))
    rows = rows or int(random.choice([1, 1, 1, 2, 5]))
    weights = weights_of(random, (results, 1, 1, length))
    bias, zero = bias_of(random, results), zero_point(random, dtype)
    kind = kind or str(random.choice(KINDS))
    rounding = rounding or (
        Rounding.SIXTEEN if dtype == "int16" else random.choice([Rounding.ONCE, Rounding.ONCE, Rounding.TWICE])
    )
    finish = requantisation(random, weights, kind, rounding, dtype)
    places = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    data, result = value("input", dtype, (rows, 1, 1, length)), value("output", dtype, (rows, results))
    return program(Convolution("layer", (data,), (result,), places, 1, weights, bias, zero, 0, finish))


@makes("int8", "int16")
def depthwise(
    random: Random,
    shape: Any = None,
    size: Any = None,
    multiplier: int | None = None,
    kind: str | None = None,
    dtype: str = "int8",
    **keys: Any,
) -> Program:
    """data [n,h,w,c]."""
    if shape is None:
        shape = (
            int(random.choice([1, 1, 1, 2])),
            int(random.integers(3, 14)),
            int(random.integers(3, 14)),
            int(random.choice([1, 2, 3, 4, 5, 8, 12, 16, 17, 20, 44, 60, 100])),
        )
    size = size or ((3, 3) if random.random() < 0.5 else (int(random.integers(1, 6)), int(random.integers(1, 6))))
    size = tuple(min(extent, limit) for extent, limit in zip(size, shape[1:3], strict=True))
    multiplier = multiplier or int(random.choice([1, 1, 1, 2, 3]))
    results = shape[3] * multiplier
    if "dilation" not in keys and random.random() < 0.1 and max(size) < 4:
        keys["dilation"] = (2, 2)
        keys["same"] = True
    weights = weights_of(random, (results, *size))
    bias, zero, finish = numbers_of(random, weights, kind, dtype)
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, results))
    moved = np.ascontiguousarray(np.moveaxis(weights, 0, -1))
    return program(Depthwise("layer", (data,), (result,), places, moved, bias, zero, 0, finish))


@makes("int8", "int16")
def pool(random: Random, shape: Any = None, size: Any = None, dtype: str = "int8", **keys: Any) -> Program:
    """An average or the maximum of windows of data [n,h,w,c]."""
    shape = shape or (
        int(random.choice([1, 1, 2])),
        *(int(integer) for integer in random.integers(2, 10, 2)),
        int(random.choice([1, 3, 8, 15, 16, 17, 24, 33])),
    )
    size = size or tuple(int(random.integers(1, min(6, limit) + 1)) for limit in shape[1:3])
    limits = random_limits(random, dtype, 0)
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, shape[3]))
    kind = str(random.choice(["average", "maximum"]))
    return program(Pool("layer", (data,), (result,), kind, places, *limits))


@makes("int8")
def convolution_sum(random: Random, **keys: Any) -> Program:
    """A convolution whose results are added to a second input, as either operand."""
    layer: Any = convolution(random, **keys).operations[0]
    shape = layer.results[0].shape
    added: Any = elements(random, shape, kind=str(random.choice(["add", "add", "subtract"]))).operations[0]
    fields = {field.name: getattr(layer, field.name) for field in dataclasses.fields(layer)}
    fields["inputs"] = (*layer.inputs, value("input", "int8", shape))
    return program(ConvolutionSum(**fields, function=added.function, place=int(random.integers(0, 2))))


@makes("int8")
def nibbles(random: Random, dtype: str = "int8", **keys: Any) -> Program:
    """A convolution, a sum of one, or a fully connected layer with at least 256 weights of 4 bits."""
    while True:
        make = (convolution, convolution, convolution_sum, dense)[int(random.integers(0, 4))]
        layer: Any = make(random, **keys, **({} if make is convolution_sum else {"dtype": dtype})).operations[0]
        if layer.weights.size >= 256:
            break
    each = layer.finish.multipliers
    multipliers = tuple(Multiplier(one.fixed, one.shift + 4 if -24 < one.shift < -4 else one.shift) for one in each)
    finish = dataclasses.replace(layer.finish, multipliers=multipliers)
    return program(dataclasses.replace(layer, weights=layer.weights >> 4, finish=finish))
