# SPDX-License-Identifier: Apache-2.0
"""Binary arithmetic in all dtypes, with broadcasting, against LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import cases_of, check_configurations  # noqa: E402
from models.elements import (  # noqa: E402
    ACTIVATIONS,
    any_shape,
    broadcast_shapes,
    check_dtypes,
    nonzero_cases,
    quantised,
)
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402

QUANTISED = ["int8", "uint8", "int16"]


def binary(kind, random, dtype, result_factor=2.0, **options):
    """Return a model of one operator with two inputs, or an input and a constant."""
    model = Model()
    one, other = broadcast_shapes(random)
    given = model.input(dtype, one, *quantised(random, dtype))
    scale, zero = quantised(random, dtype, random.choice([1, 1, 0.1]))
    if random.random() < 0.3 and dtype != "float32":
        limits = np.iinfo(dtype)
        array = random.integers(max(limits.min, -50), min(limits.max, 50), other).astype(dtype)
        array = np.where(array == zero, array + 1, array)
        second = model.constant(array.astype(dtype), scale, zero)
    else:
        second = model.input(dtype, other, scale, zero)
    scale, zero = quantised(random, dtype, result_factor)
    model.output(model.operator(kind, [given, second], (dtype, scale, zero), **options))
    return model


def activation(random):
    return {"fused_activation_function": str(random.choice(ACTIVATIONS))}


def sums(kind):
    def build(random, dtype):
        options = activation(random)
        if dtype == "int16":
            options["pot_scale_int16"] = bool(random.random() < 0.5)
            if options["pot_scale_int16"] and random.random() < 0.7:
                return shifted(kind, random, options)
        return binary(kind, random, dtype, **options)

    return build


def shifted(kind, random, options):
    """int16 with scales that are powers of two: one input has the scale of the result, the other a smaller one."""
    model = Model()
    exponent, places = int(random.integers(-14, -8)), int(random.integers(0, 6))
    exponents = [exponent, exponent - places][:: 1 if random.random() < 0.5 else -1]
    # LiteRT's ADD reads out of bounds where it would have to broadcast.
    shapes = [any_shape(random)] * 2 if kind == "ADD" else broadcast_shapes(random)
    inputs = [model.input("int16", s, 2.0**e) for s, e in zip(shapes, exponents, strict=True)]
    model.output(model.operator(kind, inputs, ("int16", 2.0**exponent, 0), **options))
    return model


@pytest.mark.parametrize("kind", ["ADD", "SUB"])
def test_sums(kind, tmp_path):
    check_dtypes(sums(kind), ["float32", *QUANTISED, "int32", "int64"], tmp_path, kind)


def test_int16_without_a_scale(tmp_path):
    def build(random, kind):
        model = Model()
        inputs = [model.input("int16", shape) for shape in broadcast_shapes(random)]
        model.output(model.operator(kind, inputs, ("int16",), **activation(random)))
        return model

    check_dtypes(build, ["MUL", "ADD"], tmp_path, "int16")


def test_products(tmp_path):
    def build(random, dtype):
        options = activation(random)
        if dtype == "uint32" and options["fused_activation_function"] == "RELU_N1_TO_1":
            options = {}
        return binary("MUL", random, dtype, 5.0, **options)

    check_dtypes(build, ["float32", *QUANTISED, "int32", "int64", "uint32"], tmp_path, "MUL", cases=unsigned_cases)


def test_high_products(tmp_path):
    """int16 inputs with an 8-bit result."""

    def build(random, dtype):
        model = Model()
        shape = any_shape(random)
        inputs = [model.input("int16", shape, *quantised(random, "int16")) for _ in range(2)]
        model.output(model.operator("MUL", inputs, (dtype, *quantised(random, dtype)), **activation(random)))
        return model

    check_dtypes(build, ["int8", "uint8"], tmp_path, "high products")


def test_shared_helpers(tmp_path):
    """A quotient and a high product in one file: both call doubled_high()."""

    def build(random):
        model = Model()
        one, other = (model.input("int16", (2, 3), 0.001) for _ in range(2))
        product = model.operator("MUL", [one, other], ("int8", 0.05, 0))
        divisor = model.constant(random.integers(40, 100, (2, 3)).astype(np.int8), 0.05, 0)
        model.output(model.operator("DIV", [product, divisor], ("int8", 0.02, 0)))
        return model

    check_configurations(build, tmp_path, seed=5, count=2, cases=large_cases)


def large_cases(graph, random):
    """Return int16 inputs whose product is not close to 0."""
    return [[random.integers(25000, 32768, one.shape).astype(np.int16) for one in graph.inputs] for _ in range(2)]


def unsigned_cases(graph, random):
    return [[np.abs(a) if a.dtype == np.uint32 else a for a in case] for case in cases_of(graph, random)]


def test_quotients(tmp_path):
    def build(random, dtype):
        return binary("DIV", random, dtype, 1.0, **activation(random))

    check_dtypes(build, ["float32", *QUANTISED, "int32"], tmp_path, "DIV", cases=nonzero_cases)


@pytest.mark.parametrize("kind", ["FLOOR_DIV", "FLOOR_MOD"])
def test_floors(kind, tmp_path):
    def build(random, dtype):
        model = Model()
        inputs = [model.input(dtype, shape) for shape in broadcast_shapes(random, greatest=4)]
        model.output(model.operator(kind, inputs, (dtype,)))
        return model

    dtypes = ["float32", "int8", "int16", "int32", *(["int64"] if kind == "FLOOR_MOD" else [])]
    check_dtypes(build, dtypes, tmp_path, kind, cases=nonzero_cases)


@pytest.mark.parametrize("kind", ["MINIMUM", "MAXIMUM"])
def test_extremes(kind, tmp_path):
    def build(random, dtype):
        return binary(kind, random, dtype)

    check_dtypes(build, ["float32", *QUANTISED, "int32", "int64"], tmp_path, kind)


def test_squared_differences(tmp_path):
    def build(random, dtype):
        return binary("SQUARED_DIFFERENCE", random, dtype, 10.0)

    check_dtypes(build, ["float32", "int8", "int32"], tmp_path, "SQUARED")


def test_powers(tmp_path):
    def build(random, dtype):
        model = Model()
        inputs = [model.input(dtype, shape) for shape in broadcast_shapes(random, greatest=4)]
        model.output(model.operator("POW", inputs, (dtype,)))
        return model

    def cases(graph, random):
        found = []
        for _ in range(3):
            shapes = [one.shape for one in graph.inputs]
            if graph.inputs[0].dtype == "float32":
                base = random.uniform(0.01, 4, shapes[0]).astype(np.float32)
                exponent = (random.standard_normal(shapes[1]) * random.choice([1, 3])).astype(np.float32)
                found.append([base, np.rint(exponent) if random.random() < 0.3 else exponent])
            else:
                found.append([random.integers(-9, 10, shapes[0], np.int32), random.integers(0, 9, shapes[1], np.int32)])
        return found

    check_dtypes(build, ["float32", "int32"], tmp_path, "POW", bound=bound_of("POW"), cases=cases)


@pytest.mark.filterwarnings("ignore:Warning. Enabling `experimental_preserve_all_tensors`")
def test_overflow(tmp_path):
    """LiteRT's default kernels have infinity, its reference kernels the greatest number."""

    def build(random):
        model = Model()
        data = model.input("float32", (2, 4))
        model.output(model.operator("MUL", [data, data], ("float32",), fused_activation_function="NONE"))
        return model

    def cases(graph, random):
        return [[np.asarray([[1e30, -1e30, 1, 2], [3, 4, 5, 6]], np.float32)]]

    [[expected]] = litert(build(None).build(), cases(None, None))
    assert expected.max() == np.finfo(np.float32).max
    check_configurations(build, tmp_path, seed=1, count=1, resolver="AUTO", cases=cases)


def test_sums_of_many(tmp_path):
    def build(random, dtype):
        model = Model()
        shape = any_shape(random)
        inputs = [model.input(dtype, shape) for _ in range(int(random.integers(2, 6)))]
        model.output(model.operator("ADD_N", inputs, (dtype,)))
        return model

    check_dtypes(build, ["float32", "int32"], tmp_path, "ADD_N", bound=bound_of("ADD_N"))


def test_prelu(tmp_path):
    def build(random, dtype):
        model = Model()
        shape = any_shape(random, 2, 4)
        data = model.input(dtype, shape, *quantised(random, dtype))
        slopes = tuple(n if random.random() < 0.5 else 1 for n in shape[1:]) if random.random() < 0.7 else shape
        if dtype == "float32":
            slope = model.constant(random.standard_normal(slopes).astype(np.float32))
        else:
            of_slope = "int8" if dtype == "int16" else dtype
            limits = np.iinfo(of_slope)
            array = random.integers(limits.min, limits.max + 1, slopes).astype(of_slope)
            slope = model.constant(array, *quantised(random, of_slope, 0.3))
        model.output(model.operator("PRELU", [data, slope], (dtype, *quantised(random, dtype, 2.0))))
        return model

    check_dtypes(build, ["float32", *QUANTISED], tmp_path, "PRELU")
