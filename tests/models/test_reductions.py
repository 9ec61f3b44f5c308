# SPDX-License-Identifier: Apache-2.0
"""Reductions, positions, the greatest elements and running sums, against LiteRT."""

import itertools
import math

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import cases_of, check_configurations, graph_of  # noqa: E402
from models.layers import quantised  # noqa: E402
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402
from models.test_pools import seed_of  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402

QUANTISED = ("int8", "uint8", "int16")


def shape_of(random, largest=7):
    return tuple(int(n) for n in random.integers(1, largest, int(random.integers(1, 6))))


def axes_of(random, rank):
    count = int(random.integers(1, rank + 1))
    chosen = random.permutation(rank)[:count]
    return np.array([int(a) - rank * int(random.integers(0, 2)) for a in chosen], np.int32)


def numbers_of(random, dtype):
    return quantised(random, dtype) if dtype in QUANTISED else (None, 0)


def reduction(random, kind, dtype, moved=False):
    """`moved`: int8 as uint8 with zero points above by 128."""
    model = Model()
    shape = shape_of(random, 4 if kind == "REDUCE_PROD" else 7)
    axes = axes_of(random, len(shape))
    count = int(np.prod([shape[a] for a in {int(a) % len(shape) for a in axes}]))
    scale, zero = numbers_of(random, dtype)
    target = (scale, zero)
    if scale is not None and kind == "MEAN":
        target = (scale * random.uniform(0.3, 1.5), numbers_of(random, dtype)[1])
    elif scale is not None and kind == "SUM":
        target = (scale * random.uniform(0.5, 2) * np.sqrt(count), numbers_of(random, dtype)[1])
    elif scale is not None and kind == "REDUCE_PROD":
        # The product of values that are mostly above 1 in magnitude.
        scale = float(random.uniform(1.0, 1.5) / (60 if dtype == "int8" else 16000))
        target = (scale * 1.4**count, numbers_of(random, dtype)[1])
        zero = 0 if dtype == "int16" else int(random.integers(-20, 20))
    if moved:
        dtype, zero, target = "uint8", zero + 128, (target[0], target[1] + 128)
    data = model.input(dtype, shape, scale, zero)
    keep = bool(random.integers(0, 2))
    model.output(model.operator(kind, [data, model.constant(axes)], (dtype, *target), keep_dims=keep))
    return model


ALL = ("float32", "int32", "int64", *QUANTISED)
REDUCTIONS = [
    *(("MEAN", dtype) for dtype in ALL),
    *(("SUM", dtype) for dtype in ("float32", "int32", "int64", "uint8")),
    *((kind, dtype) for kind in ("REDUCE_MAX", "REDUCE_MIN") for dtype in ALL),
    *(("REDUCE_PROD", dtype) for dtype in ("float32", "int32", "int64", "int8", "int16")),
    ("REDUCE_ANY", "bool"),
    ("REDUCE_ALL", "bool"),
]


def sparse_truth(graph, random):
    """Bools that are often all equal."""
    chance = random.choice([0.05, 0.5, 0.95])
    return [[random.random(one.shape) < chance for one in graph.inputs] for _ in range(3)]


@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS)
def test_reductions(kind, dtype, tmp_path):
    check_configurations(
        lambda random: reduction(random, kind, dtype),
        tmp_path,
        seed=seed_of(kind, dtype),
        bound=bound_of(kind),
        cases=sparse_truth if dtype == "bool" else cases_of,
    )


def test_sum_of_int8(tmp_path):
    """BUILTIN_REF reads int8 as uint8; the sum of the same file with uint8 is correct and has the same rule."""

    def build(random):
        state = random.bit_generator.state
        model = reduction(random, "SUM", "int8")
        after = random.bit_generator.state
        random.bit_generator.state = state
        pairs.append(reduction(random, "SUM", "int8", moved=True).build())
        random.bit_generator.state = after
        return model

    pairs = []

    def oracle(content, cases, resolver):
        moved = [[(one.astype(int) + 128).astype(np.uint8) for one in case] for case in cases]
        found = litert(pairs.pop(0), moved, resolver)
        return [[(one.astype(int) - 128).astype(np.int8) for one in case] for case in found]

    check_configurations(build, tmp_path, seed=5, oracle=oracle)


def test_sum_of_int16(tmp_path):
    """BUILTIN_REF reads int16 as uint8: the oracle is the sum of real numbers, at most 1 away."""

    def oracle(content, cases, resolver):
        graph = graph_of(content)
        found = []
        for case in cases:
            [value] = outputs_of(graph, run_graph(graph, case))
            node = graph.nodes[0]
            axes = tuple({int(a) % case[0].ndim for a in node.input(1).content})
            total = case[0].astype(float).sum(axis=axes) * node.input(0).quantization.scale
            real = np.clip(total / node.output.quantization.scale, -32768, 32767).reshape(value.shape)
            assert (np.abs(value - real) <= 1).all()
            found.append([value])
        return found

    check_configurations(lambda random: reduction(random, "SUM", "int16"), tmp_path, seed=6, oracle=oracle)


def position(random, kind, dtype, result):
    model = Model()
    shape = shape_of(random, 9)
    data = model.input(dtype, shape, *numbers_of(random, dtype))
    axis = int(random.integers(-len(shape), len(shape)))
    place = model.constant(np.array(axis if random.random() < 0.5 else [axis], np.int32))
    model.output(model.operator(kind, [data, place], (result,), output_type=result))
    return model


def few_values(graph, random, has_nan=False):
    """Elements that are often equal."""
    cases = cases_of(graph, random)
    for case in cases:
        for i, one in enumerate(case):
            if one.dtype == np.float32:
                case[i] = np.where(random.random(one.shape) < 0.1 * has_nan, np.nan, np.round(one)).astype(np.float32)
            elif one.dtype != bool:
                case[i] = (one // 40).astype(one.dtype)
    return cases


def few_values_and_nan(graph, random):
    return few_values(graph, random, has_nan=True)


POSITIONS = [
    ("ARG_MAX", dtype, result)
    for dtype in ("float32", "int8", "uint8", "int32", "bool")
    for result in ("int32", "int64")
]


@pytest.mark.parametrize(
    ("kind", "dtype", "result"), [*POSITIONS, *(("ARG_MIN", *rest) for _, *rest in POSITIONS[::3])]
)
def test_positions(kind, dtype, result, tmp_path):
    check_configurations(
        lambda random: position(random, kind, dtype, result),
        tmp_path,
        seed=seed_of(kind, dtype, result),
        cases=few_values,
    )


def greatest(random, dtype):
    model = Model()
    shape = (*shape_of(random, 4)[:3], int(random.integers(1, 20)))
    numbers = numbers_of(random, dtype)
    data = model.input(dtype, shape, *numbers)
    count = model.constant(np.array(int(random.integers(1, shape[-1] + 1)), np.int32))
    model.output(*model.operator("TOPK_V2", [data, count], (dtype, *numbers), ("int32",)))
    return model


@pytest.mark.parametrize("dtype", ALL)
def test_greatest(dtype, tmp_path):
    check_configurations(
        lambda random: greatest(random, dtype), tmp_path, seed=seed_of(dtype), cases=few_values_and_nan
    )


def running_sum(random, dtype):
    model = Model()
    shape = shape_of(random)
    data = model.input(dtype, shape)
    axis = model.constant(np.array(int(random.integers(-len(shape), len(shape))), np.int32))
    options = {"exclusive": bool(random.integers(0, 2)), "reverse": bool(random.integers(0, 2))}
    model.output(model.operator("CUMSUM", [data, axis], (dtype,), **options))
    return model


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_running_sums(dtype, tmp_path):
    check_configurations(
        lambda random: running_sum(random, dtype), tmp_path, seed=seed_of(dtype), bound=bound_of("CUMSUM")
    )


def byte_running_sum(random):
    model = Model()
    shape = shape_of(random) if random.random() < 0.7 else (2, 40)
    scale, zero = float(random.uniform(0.01, 0.1)), int(random.integers(-128, 128))
    data = model.input("int8", shape, scale, zero)
    axis = model.constant(np.array(int(random.integers(-len(shape), len(shape))), np.int32))
    options = {"exclusive": bool(random.integers(0, 2)), "reverse": bool(random.integers(0, 2))}
    result = ("int8", scale * float(random.uniform(0.5, 8)), int(random.integers(-128, 128)))
    model.output(model.operator("CUMSUM", [data, axis], result, **options))
    return model


def micro_running_sum(content, cases, resolver):
    """Return the results of tflite-micro's rule. Source: its kernels/cumsum.cc, internal/reference/cumsum.h."""
    node = graph_of(content).nodes[0]
    source, target = node.input(0).quantization, node.output.quantization
    axis = int(node.input(1).content) % len(node.input(0).shape)
    fraction, exponent = math.frexp(2 * source.scale / ((1 << 20) * target.scale))
    fixed = math.floor(fraction * 2**31 + 0.5)

    def wrapped(value):
        return (value + 2**31) % 2**32 - 2**31

    def scaled(value, by, places):
        high = (value * by + (1 << 30)) >> 31
        rest, mask = high & ((1 << places) - 1), (1 << places) - 1
        return (high >> places) + (rest > (mask >> 1) + (high < 0))

    results = []
    for [data] in cases:
        found = np.zeros_like(data)
        others = [range(n) if i != axis else range(1) for i, n in enumerate(data.shape)]
        for start in itertools.product(*others):
            total = scaled(-source.zero * (1 << 20), 1 << 30, 0)
            order = range(data.shape[axis])
            for place in reversed(order) if node.options["reverse"] else order:
                at = (*start[:axis], place, *start[axis + 1 :])
                added = scaled((int(data[at]) - source.zero) * (1 << 20), 1 << 30, 0)
                before, total = total, wrapped(total + added)
                raw = scaled(before if node.options["exclusive"] else total, fixed, -exponent) + target.zero
                found[at] = max(-128, min(127, raw))
        results.append([found])
    return results


def test_byte_running_sums(tmp_path):
    check_configurations(byte_running_sum, tmp_path, seed=12, oracle=micro_running_sum)
    with pytest.raises(RuntimeError):
        litert(byte_running_sum(np.random.default_rng(1)).build(), [])
