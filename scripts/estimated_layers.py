# SPDX-License-Identifier: Apache-2.0
"""Layers for the estimates of opwest's own table: all operations, dtypes and variants, in the sizes of real models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from graphs.drawn import drawn
from models.campaigns import graph_of
from models.moves import KINDS as MOVES
from models.sampled import groups
from models.signal_models import FAMILIES as FAMILIES_OF_SIGNALS
from models.signal_models import configuration
from models.test_arithmetic import FAMILIES
from models.test_pools import POOLS
from models.test_products import HYBRID, PRODUCTS
from models.test_reductions import POSITIONS, REDUCTIONS, position, reduction
from models.test_unary import DTYPES as UNARY
from models.test_unary import unary
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.compiler.ir import elements
from opwest.compiler.ir import operations as ir
from opwest.compiler.ir.operations import Copy, DynamicQuantize, Elementwise, HybridProduct, Pool, UserCall
from opwest.compiler.ir.program import Operation, Program
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.lowering.passes import PASSES, with_passes
from opwest.compiler.selection.costs import estimate_key, key_of
from opwest.compiler.semantics.elementwise import QuantizeNumbers
from opwest.compiler.semantics.fixed_point import RANGES, Rounding
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.tuning import random_layers
from opwest.tuning.random_layers import Random

KINDS = ("ordinary", "ordinary", "relu", "relu", "one", "left")
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
MOST_PRODUCTS = 150_000
"""The products of a layer, so that QEMU runs all layers in minutes."""
PER_KEY = 5
"""The most layers of a kind and dtype that graphs add."""


def _kind(random: Random) -> str:
    return str(random.choice(KINDS))


def convolution(random: Random, dtype: str, size: tuple[int, int] | None = None) -> Program:
    """A convolution with the shapes of real layers."""
    while True:
        extent, depth, results = (int(random.choice(some)) for some in ((3, 4, 6, 8, 12, 16, 24), DEPTHS, DEPTHS))
        taps = size or tuple(int(n) for n in random.choice([(3, 3), (3, 3), (5, 5), (1, 5), (4, 4), (10, 4), (2, 3)]))
        keys = {"stride": (2, 2) if random.random() < 0.3 else (1, 1), "same": bool(random.random() < 0.75)}
        if max(taps) > extent or results * depth * extent**2 * taps[0] * taps[1] > MOST_PRODUCTS:
            continue
        return random_layers.convolution(
            random, (1, extent, extent, depth), taps, results, _kind(random), dtype, dilation=(1, 1), **keys
        )


def pointwise(random: Random, dtype: str) -> Program:
    """A convolution of one tap."""
    return convolution(random, dtype, (1, 1))


def dense(random: Random, dtype: str, make: Callable[..., Program] = random_layers.dense) -> Program:
    """A fully connected layer of one row."""
    length = int(random.choice([4, 7, 12, 16, 20, 32, 49, 64, 100, 128, 256, 490, 640, 1000]))
    results = int(random.choice([1, 2, 4, 10, 12, 16, 25, 32, 64, 100, 128, 200]))
    rounding = None if dtype == "int16" else Rounding.ONCE if random.random() < 0.7 else Rounding.TWICE
    keys = {"rows": 1, "kind": _kind(random), "dtype": dtype, "rounding": rounding}
    return make(random, length=length, results=results, **keys)


def nibbles(random: Random, dtype: str) -> Program:
    """A fully connected layer of one row with weights of 4 bits."""
    return dense(random, dtype, random_layers.nibbles)


def rows(random: Random, dtype: str) -> Program:
    """A fully connected layer of several rows."""
    ranges = ((8, 16, 20, 32, 64), (4, 8, 16, 30, 64), (2, 5, 16, 49))
    length, results, count = (int(random.choice(some)) for some in ranges)
    rounding = None if dtype == "int16" else Rounding.ONCE if random.random() < 0.7 else Rounding.TWICE
    return random_layers.dense(random, length, results, count, _kind(random), dtype, rounding)


def whole(random: Random, dtype: str) -> Program:
    """A convolution whose only window is the whole image: a fully connected layer, for variants of both."""
    extent, depth, results = (int(random.choice(some)) for some in ((2, 3, 4, 5), DEPTHS, DEPTHS[:-2]))
    shape, size = (1, extent, extent, depth), (extent, extent)
    return random_layers.convolution(
        random, shape, size, results, _kind(random), dtype, stride=(1, 1), dilation=(1, 1), same=False
    )


def nibble_convolution(random: Random, dtype: str) -> Program:
    """A convolution with weights of 4 bits, or a sum of one."""
    while True:
        make = (pointwise, convolution, convolution_sum)[int(random.integers(0, 3))]
        layer: Any = make(random, dtype).operations[0]
        if layer.weights.size >= 256:
            return random_layers.program(dataclasses.replace(layer, weights=layer.weights >> 4))


def depthwise(random: Random, dtype: str) -> Program:
    """A depthwise convolution with the shapes of real layers."""
    while True:
        extent, depth = int(random.choice([3, 4, 6, 8, 12, 16, 24])), int(random.choice(DEPTHS))
        size = tuple(int(n) for n in random.choice([(3, 3), (3, 3), (3, 3), (5, 5), (1, 5), (2, 2), (7, 3)]))
        multiplier = int(random.choice([1, 1, 1, 1, 2, 4]))
        if max(size) > extent or depth * multiplier * extent**2 * size[0] * size[1] > MOST_PRODUCTS / 2:
            continue
        stride = (2, 2) if random.random() < 0.3 else (1, 1)
        return random_layers.depthwise(
            random, (1, extent, extent, depth), size, multiplier, _kind(random), dtype, dilation=(1, 1), stride=stride,
            same=bool(random.random() < 0.8),
        )  # fmt: skip


def pool(random: Random, dtype: str) -> Program:
    """A pool: windows of 2 or 3, or the whole image."""
    extent, depth = int(random.choice([2, 4, 6, 8, 12, 16])), int(random.choice(DEPTHS))
    size = min(extent, int(random.choice([2, 2, 3, extent])))
    stride = (1, 1) if size == extent or random.random() < 0.2 else (2, 2)
    made = random_layers.pool(random, (1, extent, extent, depth), (size, size), dtype, stride=stride)
    return _whole(made, RANGES[dtype])


def _whole(program: Program, limits: tuple[int, int]) -> Program:
    """Return a program whose results are not limited: a compiler leaves out what cannot change them."""
    [operation] = program.operations
    low, high = limits
    if hasattr(operation, "function"):
        numbers = dataclasses.replace(operation.function.numbers, low=low, high=high)
        changed = {"function": dataclasses.replace(operation.function, numbers=numbers)}
    else:
        changed = {"low": low, "high": high}
    return random_layers.program(dataclasses.replace(operation, **changed))


def convolution_sum(random: Random, dtype: str) -> Program:
    """A convolution with a sum."""
    return _whole(random_layers.convolution_sum(random, **_sizes(random, dtype)), RANGES[dtype])


def _sizes(random: Random, dtype: str) -> dict[str, Any]:
    [layer] = (pointwise if random.random() < 0.4 else convolution)(random, dtype).operations
    shape = layer.inputs[0].shape
    return {"shape": shape, "size": layer.window.size, "results": len(layer.weights), "kind": _kind(random),
            "stride": layer.window.stride, "dilation": (1, 1), "same": True}  # fmt: skip


def _count(random: Random) -> int:
    return int(np.exp(random.uniform(1, 7.5)))


def add(random: Random, dtype: str) -> Program:
    """A sum of two tensors of equal shapes."""
    return _whole(random_layers.add(random, _count(random), dtype), RANGES[dtype])


def multiply(random: Random, dtype: str) -> Program:
    """A product of two tensors of equal shapes."""
    made = _whole(random_layers.elements(random, (1, _count(random)), "multiply"), RANGES["int8"])
    if dtype == "int8":
        return made
    # The multiplier of another layer: without one, as a test has, compilers leave out the product.
    [layer], [other] = made.operations, random_layers.multiply(random, _count(random), dtype).operations
    numbers = dataclasses.replace(other.function.numbers, multiplier=layer.function.numbers.multiplier)
    function = dataclasses.replace(other.function, numbers=numbers)
    return _whole(random_layers.program(dataclasses.replace(other, function=function)), RANGES[dtype])


def matrices(random: Random, dtype: str) -> Program:
    """A product of two computed matrices, as in attention."""
    rows, depth, columns = (int(random.choice([1, 4, 8, 16, 25, 32, 49, 64])) for _ in range(3))
    heads = int(random.choice([1, 1, 2, 4]))
    swaps = False, bool(random.random() < 0.5)
    return random_layers.matrix_product(
        random, (rows, depth, columns), ((heads,), (heads,)), swaps, "one", dtype,
        Rounding.SIXTEEN if dtype == "int16" else Rounding.TWICE, constant=-1, has_bias=False,
    )  # fmt: skip


def _windows(random: Random) -> tuple[int, int, int, tuple[int, int]]:
    """Return rows, channels of the data and of the result, and a window with not too many products."""
    while True:
        extent, depth, results = (int(random.choice(some)) for some in ((2, 4, 6, 8, 12, 16), DEPTHS[2:], DEPTHS[2:]))
        size = tuple(int(n) for n in random.choice([(3, 3), (3, 3), (2, 2), (4, 4), (5, 5)]))
        if max(size) <= extent and results * depth * extent**2 * size[0] * size[1] <= MOST_PRODUCTS:
            return extent, depth, results, (size[0], size[1])


def transposed(random: Random, dtype: str) -> Program:
    """A transposed convolution with constant weights."""
    extent, depth, results, size = _windows(random)
    return random_layers.transposed_convolution(
        random, (1, extent, extent, depth), size, results, (2, 2), _kind(random), dtype, True, True, 0
    )


def grouped(random: Random, dtype: str) -> Program:
    """A grouped convolution."""
    extent, depth, results, size = _windows(random)
    groups = int(random.choice([2, 2, 4]))
    channels, results = groups * -(-depth // groups), groups * -(-results // groups)
    taken = (1, 1) if random.random() < 0.3 else size
    keys = {"stride": (1, 1), "dilation": (1, 1), "same": True}
    shape = (1, extent, extent, channels)
    return random_layers.grouped_convolution(random, shape, taken, groups, results, _kind(random), dtype, **keys)


def hybrid(random: Random, dtype: str) -> Program:
    """A layer with float32 data and int8 weights: fully connected, or a convolution."""
    if random.random() < 0.5:
        length, results = (int(random.choice([8, 16, 32, 64, 128, 256])) for _ in range(2))
        return random_layers.hybrid_convolution(random, (1, 1, 1, length), None, results, "dense", dtype)
    extent, depth, results, size = _windows(random)
    keys = {"stride": (1, 1), "same": True}
    return random_layers.hybrid_convolution(random, (1, extent, extent, depth), size, results, "plain", dtype, **keys)


SHARES = {convolution: 26, pointwise: 18, dense: 18, rows: 8, whole: 10, depthwise: 28, pool: 32, add: 12, multiply: 10}
"""The functions for int8 and int16, and how many layers of each."""


FLOAT_SHARES = {convolution: 14, pointwise: 10, dense: 10, rows: 5, whole: 5, depthwise: 16, pool: 16}
"""The functions whose layers are also made of float32, and how many of each."""


def _as_float(operation: Any, random: Random) -> Operation:
    """Return a layer with the geometry of an int8 layer, for float32."""
    values = {
        name: tuple(dataclasses.replace(value, dtype="float32") for value in getattr(operation, name))
        for name in ("inputs", "results")
    }
    low = 0.0 if random.random() < 0.5 else None
    if isinstance(operation, Pool):
        return dataclasses.replace(operation, **values, low=low, high=None)
    weights = random.normal(0, 1, operation.weights.shape).astype(np.float32)
    bias = random.normal(0, 1, operation.results[0].shape[-1]).astype(np.float32)
    return dataclasses.replace(operation, **values, weights=weights, bias=bias, zero=0, finish=ir.Clamp(low, None))


def _float_operands(random: Random) -> Iterator[Operation]:
    """Yield a function of elements and a product of matrices."""
    yield from random_layers.float_elements(random, _count(random), limits=(None, None)).operations
    sizes = [int(random.choice([1, 4, 8, 12, 16, 24, 32, 48])) for _ in range(3)]
    yield from random_layers.float_product(random, *sizes).operations


def of_floats(count: float, first: int) -> list[Operation]:
    """Return layers of float32; `count`: the share of FLOAT_SHARES."""
    found = []
    for place, (make, share) in enumerate(FLOAT_SHARES.items()):
        for number in range(max(1, round(share * count))):
            random = np.random.default_rng((40, place, number + first))
            found += [_as_float(operation, random) for operation in make(random, "int8").operations]
    for number in range(max(1, round(12 * count))):
        found += _float_operands(np.random.default_rng((41, number + first)))
    return found


def lstm(random: Random, dtype: str) -> Program:
    """An LSTM with the sizes of real models; int8 or int16 data, or float32 data with int8 weights."""
    make = random_layers.hybrid_lstm if dtype == "float32" else random_layers.integer_lstm
    return make(random, dtype, sizes=(int(random.choice(DEPTHS[3:])), int(random.choice(DEPTHS[3:14]))))


def svdf(random: Random, dtype: str) -> Program:
    """An SVDF layer with the sizes of real models."""
    sizes = (int(random.choice(DEPTHS[5:])), int(random.choice(DEPTHS[5:])), int(random.integers(1, 3)))
    return random_layers.svdf(random, dtype, (*sizes, int(random.integers(2, 20))))


def repeated(random: Random, dtype: str) -> Program:
    """A function of two tensors of equal shapes, or of rows with one value, one row, or a value for each row."""
    count, length = int(random.choice([1, 1, 4, 16, 49, 64])), int(random.choice([8, 16, 20, 32, 64, 96, 128]))
    whole = (count, length)
    other = [whole, (1,), (1,), (length,), (length,), (count, 1), (count, 1)][int(random.integers(0, 7))]
    shapes = (whole, other) if random.random() < 0.7 else (other, whole)
    return _whole(random_layers.pairs(random, shapes, None, dtype), RANGES[dtype])


def extreme(random: Random, dtype: str) -> Program:
    """The greater or the lesser values of a tensor and of one value or a row."""
    whole = (int(random.choice([1, 4, 16, 64])), int(random.choice([16, 20, 64, 128])))
    return random_layers.extremes(random, (whole, whole[int(random.integers(0, 2)) :][-1:]), dtype)


def softmax(random: Random, dtype: str) -> Program:
    """Softmax of rows."""
    shape = (int(random.choice([1, 1, 4, 16, 64])), int(random.choice([2, 4, 10, 12, 32, 49, 64, 100, 1000])))
    return random_layers.softmax(random, shape, dtype, target=dtype)


def reduced(random: Random, dtype: str) -> Program:
    """A mean or a sum of rows, or of images."""
    kind = str(random.choice(["mean", "mean", "sum"]))
    if random.random() < 0.5:
        shape = (int(random.choice([1, 16, 49, 64])), int(random.choice([16, 20, 64, 96, 128])))
        return random_layers.reduction(random, shape, (1,), dtype, kind)
    extents = [int(random.choice(some)) for some in ((3, 5, 7, 10), (3, 5, 7, 10), DEPTHS[4:])]
    return random_layers.reduction(random, (1, *extents), (1, 2), dtype, kind)


def interpolation(random: Random, dtype: str) -> Program:
    """RESIZE_BILINEAR of images, most often to twice the size."""
    extent, depth = int(random.choice([2, 4, 6, 8, 12])), int(random.choice(DEPTHS[:12]))
    size = 2 * extent if random.random() < 0.7 else extent + int(random.integers(1, 9))
    return random_layers.interpolation(random, (1, extent, extent, depth), (size, size), dtype)


def table(random: Random, dtype: str) -> Program:
    """A table of the results of 8-bit elements."""
    target = str(random.choice(["int8", "uint8", "int16"]))
    return random_layers.table(random, _count(random), dtype, target)


INTEGERS = ("int8", "int16")
OTHERS = {
    convolution_sum: (20, ("int8",)),
    nibbles: (12, ("int8",)),
    nibble_convolution: (24, ("int8",)),
    matrices: (16, INTEGERS),
    transposed: (16, INTEGERS),
    grouped: (16, INTEGERS),
    hybrid: (16, ("int8",)),
    lstm: (14, ("int8", "int16", "float32")),
    svdf: (14, ("int8",)),
    pool: (16, ("uint8",)),
    repeated: (60, INTEGERS),
    extreme: (12, INTEGERS),
    softmax: (14, INTEGERS),
    reduced: (16, INTEGERS),
    interpolation: (14, INTEGERS),
    table: (20, ("int8", "uint8")),
}
"""The functions for other dtypes, how many layers of each, and the dtypes."""


def of_kernels(count: float = 1.0, first: int = 0) -> list[Operation]:
    """Return layers of the operations that have kernels; `count`: the share of SHARES."""
    found = []
    usual = [(make, share, INTEGERS) for make, share in SHARES.items()]
    for place, (make, share, dtypes) in enumerate([*usual, *((make, *row) for make, row in OTHERS.items())]):
        for dtype in dtypes:
            for number in range(max(1, round(share * count))):
                random = np.random.default_rng((place, len(dtype), number + first))
                found += make(random, dtype).operations
    return found + of_floats(count, first)


def files() -> Iterator[Any]:
    """Yield models of one operator: all operators of tests/models, and all dtypes."""
    for parts in groups().values():
        yield from (part.build(np.random.default_rng((place, 9))) for place, part in enumerate(parts))
    makers = [(make, kind, dtype) for kind, (make, dtypes, _) in FAMILIES.items() for dtype in dtypes]
    makers += [(unary, kind, dtype) for kind, dtypes in UNARY.items() for dtype in dtypes]
    for make, kind, dtype in makers:
        yield from (make(kind, np.random.default_rng((number, 9)), dtype) for number in range(5))
    for make, words in (
        *((reduction, words) for words in REDUCTIONS),
        *((position, words) for words in POSITIONS),
        *((make, words) for make, *words in (*PRODUCTS, *HYBRID, *POOLS)),
        *((make, (dtype,)) for make, dtypes in MOVES.values() for dtype in dtypes),
    ):
        yield from (make(np.random.default_rng((number, 9)), *words) for number in range(3))


def of_signals(first: int = 0) -> list[Operation]:
    """Return the signal operators of tflite-micro, with the sizes of their tests and of sound."""
    found = []
    for name in FAMILIES_OF_SIGNALS:
        for number in range(first, first + 14):
            graph = graph_of(configuration(name, number)[0].build())
            made = lower_graph(graph, "made", Diagnostics()).operations
            found += [operation for operation in made if not isinstance(operation, Copy)]
    return found


def of_models(seeds: Iterable[int]) -> list[Operation]:
    """Return the operations of random graphs, and of files of one operator."""
    found = []
    for model in (*files(), *(drawn(seed)[0] for seed in seeds)):
        try:
            program = with_passes(lower_graph(graph_of(model.build(), simplified=True), "made", Diagnostics()), PASSES)
        except OpwestError:
            continue
        found += [operation for operation in program.operations if not isinstance(operation, UserCall)]
    return found


def is_constant(operation: Operation) -> bool:
    """Whether the limits of the results are so near to each other that operators are faster than usual."""
    if operation.results[0].dtype == "float32":
        return False
    function = getattr(operation, "function", None)
    owners = (operation, getattr(operation, "finish", None), getattr(function, "numbers", None))
    limits = [(getattr(owner, "low", None), getattr(owner, "high", None)) for owner in owners]
    return any(low is not None and high is not None and high - low < 64 for low, high in limits)


def of_functions() -> list[Operation]:
    """Return operations of all functions of float elements, and of conversions from and to float32."""
    functions = [(elements.Float(kind), row.operands, "float32", "float32") for kind, row in FLOAT_FUNCTIONS.items()]
    functions += [(elements.Plain(kind), 1, "float32", "float32") for kind, some in UNARY.items() if "float32" in some]
    for dtype, limits in RANGES.items():
        numbers = QuantizeNumbers(0.0625, 0, *limits)
        functions.append((elements.Quantised(numbers), 1, "float32", dtype))
        functions.append((elements.Dequantised(0.0625, 0), 1, dtype, "float32"))
    found = []
    for function, operands, source, target in functions:
        for shape in ((1, 3), (1, 10), (4, 16), (2, 5, 20)):
            inputs = tuple(random_layers.value("input", source, shape) for _ in range(operands))
            found.append(Elementwise("layer", inputs, (random_layers.value("output", target, shape),), function))
    return found


def of_rows() -> list[Operation]:
    """Return operations of hybrid layers and conversions that the graphs of tests do not have."""
    found: list[Operation] = []
    for number, (count, depth, results) in enumerate(((1, 8, 4), (3, 16, 10), (4, 40, 24))):
        data, scales, result, weights = (
            random_layers.value("input", "int8", (count, 1, 1, depth)),
            random_layers.value("input", "float32", (count,)),
            random_layers.value("output", "float32", (count, results)),
            random_layers.weights_of(np.random.default_rng(number), (results, depth)),
        )
        found.append(HybridProduct("layer", (data, scales), (result,), (count, depth), weights, 0.0625))
        whole, scale = (
            random_layers.value("output", "int16", (count, depth)),
            random_layers.value("output", "float32", ()),
        )
        found.append(DynamicQuantize("layer", (random_layers.value("input", "float32", whole.shape),), (whole, scale)))
    return found


def layers(count: float = 1.0) -> list[Operation]:
    """Return different layers, at most PER_KEY of a kind and dtype besides those of kernels."""
    found, counts = {}, {}
    for operation in (*of_kernels(count), *of_signals()):
        found.setdefault(key_of(operation), operation)
        counts[estimate_key(operation)] = PER_KEY
    for operation in (*of_functions(), *of_rows(), *of_models(range(400))):
        key, name = key_of(operation), estimate_key(operation)
        if key not in found and not is_constant(operation) and counts.get(name, 0) < PER_KEY * min(1, count * 2):
            counts[name] = counts.get(name, 0) + 1
            found[key] = operation
    return list(found.values())
