# SPDX-License-Identifier: Apache-2.0
"""Conversions between dtypes, against LiteRT."""

import itertools

import numpy as np
import pytest
from models.campaigns import EACH, any_shape, cases_of, check_configurations, check_dtypes, quantised, seed_of
from models.made import Model, of_one

PAIRS = [
    *itertools.product(["float32", "int8", "uint8"], ["int8", "uint8", "int16"]),
    *itertools.product(["int16"], ["int8", "int16", "int32"]),
    *itertools.product(["int32"], ["int8", "int16"]),
]
CASTS = ["float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"]


def scale_of(random, dtype):
    if dtype == "int32":
        return float(np.float32(random.uniform(0.001, 0.01))), int(random.integers(-50, 50))
    return quantised(random, dtype)


def test_quantize(tmp_path):
    def build(random, pair):
        source, target = pair
        data = (source, any_shape(random), *scale_of(random, source))
        scale, zero = scale_of(random, target)
        if random.random() < 0.2 and target != "int32":
            scale = 2.0 ** -int(random.integers(3, 8))
        if source == target and random.random() < 0.3:
            scale, zero = data[2:]
        if {source, target} == {"int8", "uint8"} and random.random() < 0.5:
            scale, zero = data[2], data[3] + (128 if target == "uint8" else -128)
        return of_one("QUANTIZE", [data], (target, scale, zero))

    check_dtypes(build, PAIRS, tmp_path, "QUANTIZE")


def test_dequantize(tmp_path):
    def build(random, dtype):
        return of_one("DEQUANTIZE", [(dtype, any_shape(random), *quantised(random, dtype))], ("float32",))

    check_dtypes(build, ["int8", "uint8", "int16"], tmp_path, "DEQUANTIZE")


def test_dequantize_constants(tmp_path):
    """float16 constants, and int8 ones with a scale for each slice."""

    def build(random, dtype):
        model = Model()
        shape = (2, 3, 4)
        if dtype == "float16":
            stored = model.constant(random.standard_normal(shape).astype(np.float16))
        else:
            axis = int(random.integers(0, 3))
            scales = random.uniform(0.01, 0.1, shape[axis])
            stored = model.constant(random.integers(-128, 128, shape).astype(np.int8), scales, 0, axis)
        plain = model.operator("DEQUANTIZE", [stored], ("float32",))
        return model.ending_with("ADD", [model.input("float32", shape), plain], ("float32",))

    check_dtypes(build, ["float16", "int8"], tmp_path, "constants")


@pytest.mark.parametrize("kind", ["QUANTIZE", "DEQUANTIZE"])
def test_scales_for_each_slice(kind, tmp_path):
    def build(random, dtype):
        model, shape = Model(), any_shape(random)
        axis = int(random.integers(0, len(shape)))
        zeros = [int(quantised(random, dtype)[1]) for _ in range(shape[axis])]
        each = {"scale": random.uniform(0.01, 0.1, shape[axis]), "zero": zeros, "axis": axis}
        if kind == "DEQUANTIZE":
            result = model.operator(kind, [model.input(dtype, shape, **each)], ("float32",))
        else:
            result = model.operator(kind, [model.input("float32", shape)], (dtype,))
            for name, value in {"shape": shape, **each}.items():
                setattr(result, name, value)
        return model.output(result)

    dtypes = ["int8", "uint8", "int16"] if kind == "QUANTIZE" else ["int8", "uint8"]
    check_dtypes(build, dtypes, tmp_path, f"each {kind}")


def extreme_cases(graph, random):
    """Return random inputs with numbers outside of all integers, and NaN."""
    if graph.inputs[0].dtype == "float64":
        return [[random.standard_normal(graph.inputs[0].shape) * 300] for _ in range(3)]
    found = cases_of(graph, random)
    for [array] in found:
        if array.dtype.kind == "f" and not graph.outputs[0].dtype.startswith("float"):
            flat = array.reshape(-1)
            flat[::2] *= 100
            flat[:1] = random.choice([3e9, -3e9, 1e20, -1e20, np.nan, np.inf, -np.inf])
    return found


@pytest.mark.parametrize("source", CASTS)
def test_cast(source, tmp_path):
    targets = itertools.cycle(CASTS)

    def build(random):
        target = next(targets)
        options = {"in_data_type": source, "out_data_type": target}
        return of_one("CAST", [(source, any_shape(random))], (target,), **options)

    count = max(EACH // 2, 1) * len(CASTS)
    check_configurations(build, tmp_path, seed=seed_of(source), count=count, cases=extreme_cases)
