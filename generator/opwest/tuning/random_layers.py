# SPDX-License-Identifier: Apache-2.0
"""Random layers as programs of one operation, with the numbers that break kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Depthwise, Elementwise, Pool
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.semantics.arithmetic import AddNumbers, ProductNumbers
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier, Requantisation, Rounding, quantize_multiplier
from opwest.compiler.semantics.windows import Window

Random: TypeAlias = Any
"""numpy.random.Generator. Its stubs do not accept all lists that it chooses from."""


def value(role: str, dtype: str, shape: Sequence[int]) -> Value:
    """Return a value of a program."""
    return Value(role, role, dtype, tuple(int(extent) for extent in shape))


def program(operation: Operation) -> Program:
    """Return a program of one operation."""
    made = Program()
    made.inputs = [data for data in operation.inputs if data.role == "input"]
    made.outputs = list(operation.results)
    made.operations = [operation]
    return made


def window(
    random: Random,
    image: Sequence[int],
    size: Sequence[int],
    stride: Any = None,
    dilation: Any = None,
    same: bool | None = None,
) -> Window:
    """Return a window over an image: TFLite's SAME or VALID, or any padding below the size."""
    stride = stride or (int(random.integers(1, 4)), int(random.integers(1, 4)))
    dilation = dilation or (1, 1)
    same = bool(random.integers(0, 2)) if same is None else same
    before, result = [], []
    for axis in range(2):
        reach = (size[axis] - 1) * dilation[axis] + 1
        if same:
            count = -(-image[axis] // stride[axis])
            before.append(max(0, (count - 1) * stride[axis] + reach - image[axis]) // 2)
        else:
            count = -(-(image[axis] - reach + 1) // stride[axis])
            before.append(0)
        assert count > 0
        result.append(count)
    places: Any = (size, stride, dilation, before, result)
    return Window(*(tuple(place) for place in places))


def requantisation(
    random: Random, weights: Any, kind: str, rounding: Rounding = Rounding.TWICE, dtype: str = "int8"
) -> Requantisation:
    """Return the end of a layer. weights [o, ...] of int8; `kind`: ordinary, relu, or a kind of edge."""
    results = len(weights)
    low, high = (-128, 127) if dtype == "int8" else (-32768, 32767)
    flat = weights.reshape(results, -1).astype(np.int64)
    spread = np.sqrt((flat**2).sum(axis=1) + 1.0) * (74 if dtype == "int8" else 18000)
    target = 40 if dtype == "int8" else 9000
    reals = target / spread * random.uniform(0.3, 3, results)
    each = 1 if kind == "one" else results
    pairs = []
    for number in range(each):
        fraction, shift = np.frexp(reals[number])
        fixed = int(fraction * (1 << 31))
        if kind == "exponents":
            shift = int(random.choice([*range(-31, 1), int(shift), int(shift)]))
        elif kind == "left" and random.random() < 0.5:
            shift = int(random.integers(0, 31 if rounding is Rounding.TWICE else 4))
        if kind in ("exponents", "left") and random.random() < 0.2:
            fixed, shift = 0, 0
        if kind == "halves" and random.random() < 0.7:
            fixed = 1 << 30
        if kind == "greatest" and random.random() < 0.5:
            fixed = (1 << 31) - 1
        pairs.append(Multiplier(fixed, int(shift)))
    if dtype == "int16":
        if random.random() < 0.3:
            high = int(random.integers(1, 32767))
            low = -high
        return Requantisation(tuple(pairs), rounding, 0, 0 if kind == "relu" else low, high)
    offset = int(random.choice([-128, 127, 0, int(random.integers(-128, 128))]))
    if kind == "relu":
        return Requantisation(tuple(pairs), rounding, -128, -128, int(random.choice([127, 127, 50])))
    limits = (
        (max(low, offset), int(min(high, offset + random.integers(1, 250)))) if random.random() < 0.3 else (low, high)
    )
    if limits[0] >= limits[1]:
        limits = (low, high)
    return Requantisation(tuple(pairs), rounding, offset, *limits)


KINDS = ("ordinary", "ordinary", "relu", "relu", "one", "exponents", "left", "halves", "greatest")


def weights_of(random: Random, shape: Sequence[int]) -> Any:
    """Return int8 weights: usual ones, extreme ones, sparse ones."""
    kind = random.integers(0, 5)
    if kind == 0:
        return random.choice([-128, -127, 127], shape).astype(np.int8)
    if kind == 1:
        return np.clip(np.rint(random.normal(0, 25, shape)), -127, 127).astype(np.int8)
    weights = random.integers(-128, 128, shape).astype(np.int8)
    return weights * (random.random(shape) < 0.3) if kind == 2 else weights


def bias_of(random: Random, results: int) -> Any:
    """Return int32 biases, or None."""
    if random.random() < 0.15:
        return None
    return random.integers(-30000, 30000, results).astype(np.int64)


def numbers_of(random: Random, weights: Any, kind: str | None, dtype: str) -> tuple[Any, int, Requantisation]:
    """Return the bias, the zero point of the data and the end of a layer with weights [o, ...]."""
    bias, zero = bias_of(random, len(weights)), zero_point(random, dtype)
    kind = kind or str(random.choice(KINDS))
    rounding = Rounding.SIXTEEN if dtype == "int16" else Rounding.TWICE
    return bias, zero, requantisation(random, weights, kind, rounding, dtype)


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


def random_limits(random: Random, dtype: str, zero: int) -> tuple[int, int]:
    """Return the limits of results: those of the dtype, from the zero point, any."""
    low, high = RANGES[dtype]
    kind = random.integers(0, 4)
    if kind == 0 and zero < high:
        return zero, high
    if kind == 1:
        first, second = sorted(int(limit) for limit in random.choice(np.arange(low, high + 1), 2, replace=False))
        return first, second
    return low, high


def zero_point(random: Random, dtype: str) -> int:
    """Return the zero point of data: 0 for int16, else often one end of int8."""
    return 0 if dtype == "int16" else int(random.choice([-128, 127, 0, random.integers(-128, 128)]))


def inputs_of(random: Random, made: Program, case: int) -> list[Any]:
    """Return inputs: the least and the greatest values, random ones, usual ones."""
    arrays = []
    for data in made.inputs:
        low, high = (-128, 127) if data.dtype == "int8" else (-32768, 32767)
        if case % 5 == 0:
            array = np.full(data.shape, low)
        elif case % 5 == 1:
            array = random.choice([low, high], data.shape)
        elif case % 5 == 2:
            array = random.integers(low, high + 1, data.shape)
        else:
            array = np.clip(np.rint(random.normal(0, high / 2, data.shape)), low, high)
        arrays.append(array.astype(data.dtype))
    return arrays


def elements(random: Random, shape: Any = None, kind: str | None = None, dtype: str = "int8") -> Program:
    """The sum, difference or product of two tensors."""
    shape = shape or (1, int(random.integers(1, 200)))
    operands = [value("input", dtype, shape) for _ in range(2)]
    low, high = (-128, 127) if random.random() < 0.6 else (int(random.integers(-128, 0)), int(random.integers(1, 128)))
    zeros: Any = tuple(zero_point(random, "int8") for _ in range(3))
    if random.random() < 0.4:
        zeros, low = (*zeros[:2], -128), -128
    first, second, target = (float(np.float32(random.uniform(0.01, 0.2))) for _ in range(3))
    function: Any
    kind = kind or str(random.choice(["add", "add", "subtract", "multiply"]))
    if kind == "multiply":
        real = first * second / target * float(random.choice([1.0, 1.0, 0.01, 4.0]))
        function = Product(ProductNumbers(zeros[:2], quantize_multiplier(real), zeros[2], low, high))
    else:
        target = max(first, second) * float(random.uniform(0.6, 3))
        twice = 2 * max(first, second)
        multipliers = (quantize_multiplier(first / twice), quantize_multiplier(second / twice))
        numbers = AddNumbers(
            20, zeros[:2], multipliers, quantize_multiplier(twice / ((1 << 20) * target)), zeros[2], low, high
        )
        function = AddQuantised(numbers, kind == "subtract")
    return program(Elementwise("layer", tuple(operands), (value("output", dtype, shape),), function))


def _pair(random: Random, size: int | None, dtype: str) -> tuple[tuple[Value, Value], Value]:
    """Return two operands and a result of one dimension."""
    shape = (int(size or random.choice([1, 3, 4, 17, 64, 99])),)
    return (Value("one", "input", dtype, shape), Value("other", "input", dtype, shape)), value("output", dtype, shape)


def add(random: Random, size: int | None = None, dtype: str = "int8") -> Program:
    """A sum or difference of two quantised values, with scales of any ratio."""
    inputs, result = _pair(random, size, dtype)
    left, zero = 15 if dtype == "int16" else 20, zero_point(random, dtype)
    scales = np.exp(random.uniform(-6, 1, 2))
    scales[1] = scales[0] * random.choice([1, 1, scales[1], 0.5])
    twice = 2 * scales.max()
    target = scales.max() * np.exp(random.uniform(-3, 3)) * random.choice([1, 1, 1, 2.0**-20])
    numbers = AddNumbers(
        left,
        (zero_point(random, dtype), zero_point(random, dtype)),
        (quantize_multiplier(float(scales[0] / twice)), quantize_multiplier(float(scales[1] / twice))),
        quantize_multiplier(float(twice / ((1 << left) * target))),
        zero,
        *random_limits(random, dtype, zero),
    )
    return program(Elementwise("layer", inputs, (result,), AddQuantised(numbers, bool(random.random() < 0.3))))


def multiply(random: Random, size: int | None = None, dtype: str = "int8") -> Program:
    """A product of two quantised values, with a multiplier of any size."""
    inputs, result = _pair(random, size, dtype)
    zero = zero_point(random, dtype)
    real = np.exp(random.uniform(-12, 2)) * random.choice([1, 1, 1, 2.0**-25, 0])
    zeros = (zero_point(random, dtype), zero_point(random, dtype))
    limits = random_limits(random, dtype, zero)
    numbers = ProductNumbers(zeros, quantize_multiplier(float(real)), zero, *limits)
    return program(Elementwise("layer", inputs, (result,), Product(numbers)))


def convolution_sum(random: Random, **keys: Any) -> Program:
    """A convolution whose results are added to a second input, as either operand."""
    layer: Any = convolution(random, **keys).operations[0]
    shape = layer.results[0].shape
    added: Any = elements(random, shape, kind=str(random.choice(["add", "add", "subtract"]))).operations[0]
    fields = {field.name: getattr(layer, field.name) for field in dataclasses.fields(layer)}
    fields["inputs"] = (*layer.inputs, value("input", "int8", shape))
    return program(ConvolutionSum(**fields, function=added.function, place=int(random.integers(0, 2))))
