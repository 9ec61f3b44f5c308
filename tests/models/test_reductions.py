# SPDX-License-Identifier: Apache-2.0
"""Reductions, positions, the greatest elements and running sums, against LiteRT."""

import numpy as np
import pytest
from models.campaigns import cases_of, check_configurations, check_family, graph_of, interpreted
from models.layers import quantised
from models.made import of_one
from models.micro_rules import micro_running_sum
from models.oracle import litert

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
    keep = bool(random.integers(0, 2))
    return of_one(kind, [(dtype, shape, scale, zero), (axes,)], (dtype, *target), keep_dims=keep)


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
    chance = random.choice([0.05, 0.5, 0.95])
    return [[random.random(one.shape) < chance for one in graph.inputs] for _ in range(3)]


@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS)
def test_reductions(kind, dtype, tmp_path):
    check_family(tmp_path, reduction, kind, dtype, cases=sparse_truth if dtype == "bool" else cases_of)


def test_sum_of_int8(tmp_path):
    """BUILTIN_REF reads int8 as uint8; the sum of the same file with uint8 is correct and has the same rule."""
    pairs = []

    def build(random):
        state = random.bit_generator.state
        pairs.append(reduction(random, "SUM", "int8", moved=True).build())
        random.bit_generator.state = state
        return reduction(random, "SUM", "int8")

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
            [value] = interpreted(graph, case)
            node = graph.nodes[0]
            axes = tuple({int(a) % case[0].ndim for a in node.input(1).content})
            total = case[0].astype(float).sum(axis=axes) * node.input(0).quantization.scale
            real = np.clip(total / node.output.quantization.scale, -32768, 32767).reshape(value.shape)
            assert (np.abs(value - real) <= 1).all()
            found.append([value])
        return found

    check_configurations(lambda random: reduction(random, "SUM", "int16"), tmp_path, seed=6, oracle=oracle)


def position(random, kind, dtype, result):
    shape = shape_of(random, 9)
    data = (dtype, shape, *numbers_of(random, dtype))
    axis = int(random.integers(-len(shape), len(shape)))
    place = np.array(axis if random.random() < 0.5 else [axis], np.int32)
    return of_one(kind, [data, (place,)], (result,), output_type=result)


def few_values(graph, random, has_nan=False):
    cases = cases_of(graph, random)
    for case in cases:
        for i, one in enumerate(case):
            if one.dtype == np.float32:
                case[i] = np.where(random.random(one.shape) < 0.1 * has_nan, np.nan, np.round(one)).astype(np.float32)
            elif one.dtype != bool:
                case[i] = (one // 40).astype(one.dtype)
    return cases


POSITIONS = [
    *(("ARG_MAX", dtype, f"int{bits}") for dtype in ("float32", "int8", "uint8", "int32", "bool") for bits in (32, 64)),
    *(("ARG_MIN", dtype, f"int{bits}") for dtype, bits in {"float32": 32, "int8": 64, "int32": 32, "bool": 64}.items()),
]


@pytest.mark.parametrize(("kind", "dtype", "result"), POSITIONS)
def test_positions(kind, dtype, result, tmp_path):
    check_family(tmp_path, position, kind, dtype, result, cases=few_values)


def greatest(random, dtype):
    shape = (*shape_of(random, 4)[:3], int(random.integers(1, 20)))
    numbers = numbers_of(random, dtype)
    count = np.array(random.integers(1, shape[-1] + 1), np.int32)
    return of_one("TOPK_V2", [(dtype, shape, *numbers), (count,)], (dtype, *numbers), ("int32",))


@pytest.mark.parametrize("dtype", ALL)
def test_greatest(dtype, tmp_path):
    def cases(graph, random):
        return few_values(graph, random, has_nan=True)

    check_family(tmp_path, greatest, dtype, bound=0.0, cases=cases)


def running_sum(random, dtype):
    is_byte = dtype == "int8"
    shape = (2, 40) if is_byte and random.random() >= 0.7 else shape_of(random)
    scale, zero = (float(random.uniform(0.01, 0.1)), int(random.integers(-128, 128))) if is_byte else (None, 0)
    axis = np.array(random.integers(-len(shape), len(shape)), np.int32)
    options = {"exclusive": bool(random.integers(0, 2)), "reverse": bool(random.integers(0, 2))}
    target = (scale * float(random.uniform(0.5, 8)), int(random.integers(-128, 128))) if is_byte else ()
    return of_one("CUMSUM", [(dtype, shape, scale, zero), (axis,)], (dtype, *target), **options)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_running_sums(dtype, tmp_path):
    check_family(tmp_path, running_sum, dtype)


def test_running_sums_of_int8(tmp_path):
    check_family(tmp_path, running_sum, "int8", seed=12, oracle=micro_running_sum)
    with pytest.raises(RuntimeError):
        litert(running_sum(np.random.default_rng(1), "int8").build(), [])
