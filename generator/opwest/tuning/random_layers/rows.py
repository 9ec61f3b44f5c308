# SPDX-License-Identifier: Apache-2.0
"""Random functions of operands that are repeated, and operations along rows: softmax, reductions, interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Quantization, Tensor
from opwest.compiler.ir.elements import AddQuantised, AddShifted, Plain, Prelu, Product, Rescaled, SquaredDifference
from opwest.compiler.ir.movement import Interpolate
from opwest.compiler.ir.operations import Elementwise, Reduce, Softmax16, SoftmaxTable
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.semantics import windows
from opwest.compiler.semantics.arithmetic import AddNumbers, PreluNumbers, ProductNumbers, ShiftNumbers
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    Requantisation,
    Rounding,
    quantize_multiplier,
)
from opwest.compiler.semantics.rows import exponentials, softmax16_numbers
from opwest.compiler.semantics.tables import Rescale
from opwest.tuning.random_layers.numbers import Random, makes, program, random_limits, value, zero_point

Shapes = tuple[tuple[int, ...], tuple[int, ...]]
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 64)


def shapes_of(random: Random, form: str | None = None) -> Shapes:
    """Return the shapes of two operands under numpy's rule of broadcasting.

    `form`: equal, scalar, vector (over the last dimension), row (a value for each row), outer, any; None: a random one.
    """
    form = form or str(random.choice(["equal", "scalar", "vector", "vector", "row", "row", "outer", "any", "any"]))
    length, rows = int(random.choice(LENGTHS)), int(random.choice([1, 2, 3, 5, 9]))
    whole = (*(int(random.integers(1, 4)) for _ in range(random.integers(0, 3))), rows, length)
    others = {
        "equal": whole,
        "scalar": () if random.random() < 0.5 else (1,) * int(random.integers(1, len(whole) + 1)),
        "vector": (1,) * int(random.integers(0, len(whole))) + (length,),
        "row": (*whole[:-1], 1),
    }
    if form in others:
        pair = whole, others[form]
    elif form == "outer":
        pair = (*whole[:-1], 1), (length,)
    else:
        masks = random.random((2, len(whole))) < 0.4
        pair = tuple(  # type: ignore[assignment]
            tuple(1 if is_one else n for n, is_one in zip(whole, mask, strict=True)) for mask in masks
        )
    return pair if random.random() < 0.5 else (pair[1], pair[0])


def _operands(random: Random, dtype: str, shapes: Shapes) -> tuple[tuple[Value, ...], Value]:
    """Return two operands, of which one can be a constant, and the result."""
    low, high = RANGES[dtype]
    operands = [Value(name, "input", dtype, shape) for name, shape in zip(("one", "other"), shapes, strict=True)]
    if random.random() < 0.3:
        place = int(random.integers(0, 2))
        content = random.integers(low, high + 1, shapes[place]).astype(dtype)
        if random.random() < 0.3:
            content = np.where(random.random(content.shape) < 0.5, low, high).astype(dtype)
        operands[place] = Value("constant", "constant", dtype, shapes[place], content=content)
    return tuple(operands), value("output", dtype, np.broadcast_shapes(*shapes))


def _add_numbers(random: Random, dtype: str, left: int) -> AddNumbers:
    """Return the numbers of a sum, or of a squared difference (left shift 7)."""
    zero = zero_point(random, dtype)
    scales = np.exp(random.uniform(-6, 1, 2))
    scales[1] = scales[0] * random.choice([1, 1, scales[1], 0.5])
    twice = float(2 * scales.max())
    target = scales.max() * np.exp(random.uniform(-1.5, 3)) * random.choice([1, 1, 1, 2.0**20])
    real = twice / ((1 << left) * float(target))
    if left == 7:
        real = twice * twice / ((1 << 2 * left) * float(target))
    return AddNumbers(
        left,
        (zero_point(random, dtype), zero_point(random, dtype)),
        (quantize_multiplier(float(scales[0]) / twice), quantize_multiplier(float(scales[1]) / twice)),
        quantize_multiplier(min(real, 0.999)),
        zero,
        *random_limits(random, dtype, zero),
    )


@makes("int8", "int16")
def pairs(
    random: Random, shapes: Shapes | None = None, kind: str | None = None, dtype: str = "int8", form: str | None = None
) -> Program:
    """The sum, difference or product of two tensors, or the square of their difference (int8 only).

    `form`: see `shapes_of`.
    """
    inputs, result = _operands(random, dtype, shapes or shapes_of(random, form))
    kinds = ["add", "subtract", "multiply", *(["square"] if dtype == "int8" else [])]
    kind = kind or str(random.choice(kinds))
    function: Any
    if kind == "multiply":
        zero = zero_point(random, dtype)
        scale = 1 if dtype == "int8" else 2.0**-8
        real = scale * np.exp(random.uniform(-9, 1)) * random.choice([1, 1, 1, 1, 2.0**-20, 2.0**12, 0])
        zeros = (zero_point(random, dtype), zero_point(random, dtype))
        limits = random_limits(random, dtype, zero)
        function = Product(ProductNumbers(zeros, quantize_multiplier(float(real)), zero, *limits))
    elif kind == "square":
        function = SquaredDifference(_add_numbers(random, dtype, 7))
    else:
        function = AddQuantised(_add_numbers(random, dtype, 15 if dtype == "int16" else 20), kind == "subtract")
    return program(Elementwise("layer", inputs, (result,), function))


@makes("int16")
def shifted(random: Random, shapes: Shapes | None = None, dtype: str = "int16", form: str | None = None) -> Program:
    """The sum or difference of int16 values whose scales are powers of two."""
    inputs, result = _operands(random, dtype, shapes or shapes_of(random, form))
    places = [0, int(random.choice([0, 0, 1, 2, random.integers(0, 16)]))]
    random.shuffle(places)
    numbers = ShiftNumbers((places[0], places[1]), *random_limits(random, dtype, 0))
    return program(Elementwise("layer", inputs, (result,), AddShifted(numbers, bool(random.random() < 0.3))))


@makes("int8", "int16")
def extremes(random: Random, shapes: Shapes | None = None, dtype: str = "int8", form: str | None = None) -> Program:
    """The greater or the lesser values of two tensors."""
    inputs, result = _operands(random, dtype, shapes or shapes_of(random, form))
    function = Plain(str(random.choice(["MAXIMUM", "MINIMUM"])))
    return program(Elementwise("layer", inputs, (result,), function))


@makes("int8")
def slopes(random: Random, shapes: Shapes | None = None, dtype: str = "int8") -> Program:
    """PRELU: slopes of any shape that is repeated, most often over the last dimension."""
    pair = shapes or shapes_of(random, str(random.choice(["equal", "scalar", "vector", "vector", "row"])))
    whole, other = (pair[0], pair[1]) if np.prod(pair[0], dtype=int) >= np.prod(pair[1], dtype=int) else pair[::-1]
    inputs, result = _operands(random, dtype, (np.broadcast_shapes(*pair), other))
    assert np.broadcast_shapes(whole, other) == result.shape
    zero = zero_point(random, dtype)
    positive = quantize_multiplier(float(np.exp(random.uniform(-4, 2))))
    negative = quantize_multiplier(float(np.exp(random.uniform(-12, -2)) * random.choice([1, 1, 1, 2.0**-20])))
    zeros = (zero_point(random, dtype), zero_point(random, dtype))
    numbers = PreluNumbers(zeros, positive, negative, zero, *RANGES[dtype])
    return program(Elementwise("layer", inputs, (result,), Prelu(numbers)))


@makes("int16")
def rescaled(random: Random, size: int | None = None, kind: str | None = None, dtype: str = "int16") -> Program:
    """LEAKY_RELU, ABS, RELU or QUANTIZE of int16 values; QUANTIZE also to int8 or int32."""
    kind = kind or str(random.choice(["LEAKY_RELU", "ABS", "RELU", "QUANTIZE"]))
    target = str(random.choice(["int16", "int8", "int32"])) if kind == "QUANTIZE" else "int16"
    positive = quantize_multiplier(float(np.exp(random.uniform(-6, 1)) * random.choice([1, 1, 1, 2.0**-20, 8])))
    negative = positive
    sign, source, zero = 1, 0, 0
    low, high = RANGES[target]
    if kind == "LEAKY_RELU":
        negative = quantize_multiplier(float(np.exp(random.uniform(-8, 1))))
        sign = int(random.choice([1, 1, -1]))
    elif kind == "RELU":
        low = 0
    elif kind == "QUANTIZE":
        zero = zero_point(random, "int8") if target == "int8" else int(random.choice([0, 0, -32768, 77]))
        source = int(random.choice([0, 0, -32768, 32767, -5]))
    shape = (int(size or random.choice([1, 2, 3, 4, 5, 17, 64, 99])),)
    numbers = Rescale(source, positive, negative, sign, kind == "ABS", zero, low, high)
    data, result = value("input", dtype, shape), value("output", target, shape)
    return program(Elementwise("layer", (data,), (result,), Rescaled(kind, numbers)))


def _tensor(dtype: str, shape: tuple[int, ...], scale: float) -> Tensor:
    return Tensor("data", dtype, shape, Quantization((float(np.float32(scale)),), (0,)))


@makes("int8", "int16")
def softmax(
    random: Random,
    shape: tuple[int, ...] | None = None,
    dtype: str = "int8",
    scale: float | None = None,
    target: str | None = None,
) -> Program:
    """Softmax of rows [...,length]; the result of int8 data can be int16."""
    shape = shape or (int(random.choice([1, 1, 2, 3, 7])), int(random.choice([*LENGTHS, 100, 700])))
    scale = scale or float(np.exp(random.uniform(-7, 1)) * (1 if dtype == "int8" else 2.0**-7))
    target = target or ("int16" if dtype == "int16" or random.random() < 0.3 else "int8")
    data, result = value("input", dtype, shape), value("output", target, shape)
    node = Node("SOFTMAX", (_tensor(dtype, shape, scale),), (_tensor(target, shape, 1.0),), {"beta": 1.0})
    if dtype == "int16":
        return program(Softmax16("layer", (data,), (result,), softmax16_numbers(node)))
    return program(SoftmaxTable("layer", (data,), (result,), exponentials(node)))


@makes("int8", "int16")
def reduction(
    random: Random,
    shape: tuple[int, ...] | None = None,
    axes: tuple[int, ...] | None = None,
    dtype: str = "int8",
    kind: str | None = None,
) -> Program:
    """A sum or mean over some dimensions, most often the last ones; sometimes the greatest or the least element."""
    if shape is None:
        inner = int(random.choice(LENGTHS))
        shape = (*(int(random.choice([1, 2, 3, 5, 8, 12])) for _ in range(random.integers(0, 4))), inner)
    if axes is None:
        rank = len(shape)
        kinds = [(rank - 1,), (rank - 1,), tuple(range(1, rank - 1)) or (0,), tuple(range(rank))]
        kinds.append(tuple(axis for axis in range(rank) if random.random() < 0.5) or (0,))
        axes = kinds[int(random.integers(0, len(kinds)))]
    count = int(np.prod([shape[axis] for axis in axes]))
    kind = kind or str(random.choice(["mean", "mean", "mean", "sum", "maximum", "minimum"]))
    finish, zero = None, 0
    if kind in ("mean", "sum"):
        multiplier = quantize_multiplier(float(np.exp(random.uniform(-3, 1.5)) * random.choice([1, 1, 1, 2.0**-20])))
        if kind == "mean":
            shift = min(count.bit_length() - 1, 32, 31 + multiplier.shift)
            multiplier = Multiplier((multiplier.fixed << shift) // count, multiplier.shift - shift)
        zero = zero_point(random, dtype)
        finish = Requantisation((multiplier,), Rounding.TWICE, zero_point(random, dtype), *RANGES[dtype])
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    data, result = value("input", dtype, shape), value("output", dtype, kept)
    return program(Reduce("layer", (data,), (result,), kind, axes, zero, finish))


@makes("int8", "int16")
def interpolation(
    random: Random,
    shape: tuple[int, ...] | None = None,
    size: tuple[int, int] | None = None,
    dtype: str = "int8",
    form: str | None = None,
) -> Program:
    """RESIZE_BILINEAR of [n,h,w,c] to any size. `form`: corners, half (of a pixel), plain; None: a random one."""
    shape = shape or (
        int(random.choice([1, 1, 2])),
        *(int(random.choice([1, 2, 3, 5, 8])) for _ in range(2)),
        int(random.choice([1, 2, 3, 4, 7, 8, 16, 21])),
    )
    if size is None:
        factors = random.choice([1, 2, 2, 3, 0.5, 1.7, 0.3], 2)
        height, width = (max(1, int(n * factor)) for n, factor in zip(shape[1:3], factors, strict=True))
        size = height, width
    form = form or str(random.choice(["corners", "half", "plain"]))
    data, result = value("input", dtype, shape), value("output", dtype, (shape[0], *size, shape[3]))
    options = {"align_corners": form == "corners", "half_pixel_centers": form == "half"}
    node = Node("RESIZE_BILINEAR", (_tensor(dtype, shape, 1.0),), (_tensor(dtype, result.shape, 1.0),), options)
    lines = windows.line(node, 1), windows.line(node, 2)
    return program(Interpolate("layer", (data,), (result,), *lines))
