# SPDX-License-Identifier: Apache-2.0
"""Random products of matrices, transposed and grouped convolutions, layers with float32 data and int8 weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.ir.operations import (
    Clamp,
    Convolution,
    DirectConvolution,
    HybridConvolution,
    HybridProduct,
    MatrixProduct,
    Sums,
)
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.semantics.fixed_point import RANGES, Rounding
from opwest.compiler.semantics.windows import Window
from opwest.tuning.random_layers.numbers import (
    KINDS,
    Random,
    bias_of,
    makes,
    numbers_of,
    program,
    requantisation,
    value,
    weights_of,
    window,
    zero_point,
)

_DEPTHS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 64, 70)
_EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 19)
_BATCHES = (
    ((), ()),
    ((), ()),
    ((2,), (2,)),
    ((3,), ()),
    ((), (3,)),
    ((2, 3), (2, 3)),
    ((2, 1), (3,)),
    ((1, 3), (2, 1)),
)
"""The dimensions of batches of the operands, under numpy's rule of broadcasting."""


def _any(random: Random, choices: Any) -> Any:
    return choices[int(random.integers(0, len(choices)))]


def _constant(name: str, content: Any) -> Value:
    """Return a constant of a program."""
    return Value(name, "constant", str(content.dtype), content.shape, content=content)


def _swapped(shape: tuple[int, ...], is_swapped: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if is_swapped else shape


def _operand(random: Random, dtype: str, shape: tuple[int, ...], is_constant: bool) -> Value:
    if not is_constant:
        return value("input", dtype, shape)
    low, high = RANGES[dtype]
    content = random.choice([low, high], shape) if random.random() < 0.3 else random.integers(low, high + 1, shape)
    return _constant("matrix", content.astype(dtype))


def _bias(random: Random, count: int, dtype: str) -> Value:
    """Return a bias: mostly a constant."""
    kind = "int64" if dtype == "int16" and random.random() < 0.5 else "int32"
    if random.random() < 0.2:
        return value("input", kind, (count,), "bias")
    return _constant("bias", random.integers(-30000, 30000, count).astype(kind))


@makes("int8", "int16")
def matrix_product(
    random: Random,
    sizes: tuple[int, int, int] | None = None,
    batches: Any = None,
    swaps: tuple[bool, bool] | None = None,
    kind: str | None = None,
    dtype: str = "int8",
    rounding: Rounding | None = None,
    constant: int | None = None,
    has_bias: bool | None = None,
) -> Program:
    """A product of `sizes` m, k, n; `constant`: the operand that is one, -1 for none.

    Without a rounding, that of BATCH_MATMUL, that of FULLY_CONNECTED (with int8 weights of int16 data), or plain sums.
    """
    rows, depth, columns = sizes or (_any(random, _EXTENTS), _any(random, _DEPTHS), _any(random, _EXTENTS))
    outer = batches or _any(random, _BATCHES)
    swaps = swaps or (bool(random.integers(0, 2)), bool(random.integers(0, 2)))
    constant = int(random.choice([-1, -1, 0, 1])) if constant is None else constant
    is_narrow = dtype == "int8"
    rounding = rounding or random.choice([Rounding.TWICE if is_narrow else Rounding.SIXTEEN, Rounding.ONCE])
    other_dtype = "int8" if is_narrow or rounding is Rounding.ONCE or random.random() < 0.2 else "int16"
    shapes = _swapped((*outer[0], rows, depth), swaps[0]), _swapped((*outer[1], depth, columns), swaps[1])
    inputs = [
        _operand(random, each, shape, place == constant)
        for place, (each, shape) in enumerate(zip((dtype, other_dtype), shapes, strict=True))
    ]
    result_shape = (*np.broadcast_shapes(*outer), rows, columns)
    if is_narrow and kind is None and random.random() < 0.1:
        result, ending, zeros = value("output", "int32", result_shape), Sums(), (0, 0)
        return program(MatrixProduct("layer", tuple(inputs), (result,), swaps, zeros, ending))
    if has_bias or (has_bias is None and random.random() < 0.4):
        inputs.append(_bias(random, columns, dtype))
    low, high = RANGES[other_dtype]
    typical = np.clip(np.rint(random.normal(0, high / 2, (columns, depth))), low, high)
    # Sums of 34 bits: results of larger multipliers would exceed 32 bits.
    kinds = KINDS if other_dtype == "int8" else [each for each in KINDS if each not in ("exponents", "left")]
    finish = requantisation(random, typical, kind or str(random.choice([*kinds, "one", "one"])), rounding, dtype)
    zeros = zero_point(random, dtype), zero_point(random, other_dtype)
    result = value("output", dtype, result_shape)
    return program(MatrixProduct("layer", tuple(inputs), (result,), swaps, zeros, finish))


@makes("int8", "int16")
def transposed_convolution(
    random: Random,
    shape: Any = None,
    size: Any = None,
    results: int | None = None,
    stride: Any = None,
    kind: str | None = None,
    dtype: str = "int8",
    is_constant: bool | None = None,
    same: bool | None = None,
    weight_zero: int | None = None,
) -> Program:
    """data [n,h,w,c], weights [o,kh,kw,c]; the result can have rows and columns that no element of the data reaches."""
    shape, places = _transposed(random, shape, size, stride, same)
    results = results or int(random.choice([1, 2, 3, 4, 5, 8, 12, 17]))
    weights = weights_of(random, (results, *places.size, shape[3]))
    bias, zero, finish = numbers_of(random, weights, kind, dtype)
    if weight_zero is None:
        weight_zero = int(random.choice([0, 0, 0, 3, -128, 127])) if dtype == "int8" else 0
    is_constant = random.random() < 0.8 if is_constant is None else is_constant
    by = _constant("weights", weights) if is_constant else value("input", "int8", weights.shape)
    inputs = [value("input", dtype, shape), by]
    if bias is not None:
        inputs.append(_constant("bias", bias.astype(np.int64 if dtype == "int16" else np.int32)))
    result = value("output", dtype, (shape[0], *places.result, results))
    zeros = zero, weight_zero
    return program(DirectConvolution("layer", tuple(inputs), (result,), places, True, 1, zeros, finish))


def _transposed(random: Random, shape: Any, size: Any, stride: Any, same: bool | None) -> tuple[Any, Window]:
    """Return the shape of data, and the window from the result to the data."""
    if shape is None:
        height, width = (int(extent) for extent in random.integers(1, 8, 2))
        shape = (int(random.choice([1, 1, 1, 2])), height, width, int(random.choice([1, 2, 3, 4, 5, 8, 16, 17, 24])))
    size = size or tuple(int(extent) for extent in random.choice([1, 2, 2, 3, 3, 4, 5], 2))
    stride = stride or tuple(int(extent) for extent in random.choice([1, 2, 2, 3], 2))
    same = bool(random.integers(0, 2)) if same is None else same
    image = [
        extent * step if same else (extent - 1) * step + reach
        for extent, step, reach in zip(shape[1:3], stride, size, strict=True)
    ]
    if random.random() < 0.3:  # a size of the result that is given
        less = [int(random.integers(0, step)) for step in stride]
        image = [max(1, extent - cut if same else extent + cut) for extent, cut in zip(image, less, strict=True)]
    found = window(random, image, size, stride, None, same)
    return shape, Window(found.size, found.stride, found.dilation, found.before, (image[0], image[1]))


@makes("int8", "int16")
def grouped_convolution(
    random: Random,
    shape: Any = None,
    size: Any = None,
    groups: int | None = None,
    results: int | None = None,
    kind: str | None = None,
    dtype: str = "int8",
    **keys: Any,
) -> Program:
    """data [n,h,w,c] with a multiple of `groups` channels, and `results` in total."""
    if shape is None:
        groups = groups or int(random.choice([2, 2, 3, 4, 5, 8]))
        channels = groups * int(random.choice([1, 2, 3, 4, 5, 8, 16]))
        shape = (int(random.choice([1, 1, 1, 2])), *(int(extent) for extent in random.integers(3, 9, 2)), channels)
    groups = groups or 2
    size = size or ((1, 1) if random.random() < 0.3 else tuple(int(extent) for extent in random.integers(1, 4, 2)))
    results = results or groups * int(random.choice([1, 2, 3, 4, 5, 8]))
    if "dilation" not in keys and random.random() < 0.15:
        keys |= {"dilation": (int(random.integers(1, 3)), int(random.integers(1, 3))), "same": True}
    weights = weights_of(random, (results, *size, shape[3] // groups))
    bias, zero, finish = numbers_of(random, weights, kind, dtype)
    places = window(random, shape[1:3], size, **keys)
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *places.result, results))
    return program(Convolution("layer", (data,), (result,), places, groups, weights, bias, zero, 0, finish))


def _rows(random: Random, shape: tuple[int, ...], rows: int) -> tuple[Value, ...]:
    """Return quantised data with the scales of its rows, and perhaps zero points."""
    inputs = (value("input", "int8", shape), value("input", "float32", (rows,)))
    return (*inputs, value("input", "int32", (rows,), "zeros")) if random.random() < 0.5 else inputs


@makes("int8")
def hybrid_product(random: Random, sizes: Any = None, batches: Any = None, dtype: str = "int8") -> Program:
    """A product of `sizes` m, k, n with constants [...,n,k]."""
    rows, depth, columns = sizes or (_any(random, _EXTENTS), _any(random, _DEPTHS), _any(random, _EXTENTS))
    outer = batches or _any(random, _BATCHES)
    shape = (*outer[0], rows, depth)
    count = int(np.prod(shape[:-1]))
    inputs = _rows(random, (count, 1, 1, depth), count)
    weights = weights_of(random, (*outer[1], columns, depth))
    result = value("output", "float32", (*np.broadcast_shapes(*outer), rows, columns))
    scale = float(np.float32(random.uniform(0.0001, 0.1)))
    return program(HybridProduct("layer", inputs, (result,), shape, weights, scale))


@makes("int8")
def hybrid_convolution(
    random: Random,
    shape: Any = None,
    size: Any = None,
    results: int | None = None,
    form: str | None = None,
    dtype: str = "int8",
    **keys: Any,
) -> Program:
    """A layer of a `form`: dense, plain, grouped, depthwise, transposed."""
    form = form or str(random.choice(["dense", "dense", "plain", "plain", "grouped", "depthwise", "transposed"]))
    groups, channels = 1, int(random.choice([1, 2, 3, 4, 5, 8, 16, 17]))
    results = results or int(random.choice([1, 2, 3, 4, 5, 8, 12, 17]))
    if form == "dense":
        shape = shape or (int(random.choice([1, 1, 2, 3, 5])), 1, 1, int(random.choice(_DEPTHS)))
        size = (1, 1)
        places = Window(size, (1, 1), (1, 1), (0, 0), (1, 1))
    elif form == "transposed":
        shape, places = _transposed(random, shape, size, keys.get("stride"), keys.get("same"))
        size = places.size
    else:
        if form == "grouped" and shape is None:
            groups = int(random.choice([2, 3, 4]))
            channels, results = groups * channels, groups * results
        shape = shape or (
            int(random.choice([1, 1, 2])),
            *(int(extent) for extent in random.integers(3, 9, 2)),
            channels,
        )
        size = size or tuple(int(extent) for extent in random.integers(1, 4, 2))
        places = window(random, shape[1:3], size, **keys)
    is_depthwise = form == "depthwise"
    results = shape[3] * int(random.choice([1, 1, 2])) if is_depthwise else results
    weights = weights_of(random, (*size, results) if is_depthwise else (results, *size, shape[3] // groups))
    inputs = _rows(random, shape, shape[0])
    bias = bias_of(random, results)
    limits = _any(random, [(None, None), (None, None), (0.0, None), (0.0, 6.0), (-1.0, 1.0)])
    finish = Clamp(*limits)
    scales = random.uniform(0.0001, 0.1, results).astype(np.float32)
    arrays = weights, scales, None if bias is None else (bias / 100).astype(np.float32)
    result = value("output", "float32", (shape[0], *places.result, results))
    is_transposed = form == "transposed"
    return program(
        HybridConvolution("layer", inputs, (result,), places, groups, is_depthwise, *arrays, finish, is_transposed)
    )
