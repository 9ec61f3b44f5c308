# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, comparisons, logic and selections in all dtypes, with broadcasting, against LiteRT."""

import numpy as np
import pytest
from models.bounds import bound_of
from models.campaigns import (
    any_shape,
    broadcast_shapes,
    cases_of,
    check_configurations,
    check_dtypes,
    graph_of,
    nonzero_cases,
    quantised,
)
from models.executor import program_of
from models.layers import ACTIVATIONS
from models.made import Model, of_one
from models.oracle import litert
from opwest.compiler.ir.elements import Clamped, Lookup

QUANTISED = ["int8", "uint8", "int16"]
NUMBERS = ["float32", *QUANTISED, "int32", "int64"]
FACTORS = {"MUL": 5.0, "DIV": 1.0, "SQUARED_DIFFERENCE": 10.0}


def binary(kind, random, dtype, result_factor=2.0, **options):
    """Return a model of one operator with two inputs, or an input and a constant."""
    one, other = broadcast_shapes(random)
    given = (dtype, one, *quantised(random, dtype))
    scale, zero = quantised(random, dtype, random.choice([1, 1, 0.1]))
    if random.random() < 0.3 and dtype != "float32":
        limits = np.iinfo(dtype)
        array = random.integers(max(limits.min, -50), min(limits.max, 50), other).astype(dtype)
        array = np.where(array == zero, array + 1, array)
        second = (array.astype(dtype), scale, zero)
    else:
        second = (dtype, other, scale, zero)
    result = (dtype, *quantised(random, dtype, result_factor))
    return of_one(kind, [given, second], result, **options)


def activation(random):
    return {"fused_activation_function": str(random.choice(ACTIVATIONS))}


def shifted(kind, random, options):
    """int16 with scales that are powers of two: one input has the scale of the result, the other a smaller one."""
    exponent, places = int(random.integers(-14, -8)), int(random.integers(0, 6))
    exponents = [exponent, exponent - places][:: 1 if random.random() < 0.5 else -1]
    # LiteRT's ADD reads out of bounds where it would have to broadcast.
    shapes = [any_shape(random)] * 2 if kind == "ADD" else broadcast_shapes(random)
    inputs = [("int16", s, 2.0**e) for s, e in zip(shapes, exponents, strict=True)]
    return of_one(kind, inputs, ("int16", 2.0**exponent, 0), **options)


def arithmetic(kind, random, dtype):
    options = activation(random) if kind in ("ADD", "SUB", "MUL", "DIV") else {}
    if kind in ("ADD", "SUB") and dtype == "int16":
        options["pot_scale_int16"] = bool(random.random() < 0.5)
        if options["pot_scale_int16"] and random.random() < 0.7:
            return shifted(kind, random, options)
    if dtype == "uint32" and options["fused_activation_function"] == "RELU_N1_TO_1":
        options = {}
    return binary(kind, random, dtype, FACTORS.get(kind, 2.0), **options)


def plain(kind, random, dtype):
    return of_one(kind, [(dtype, shape) for shape in broadcast_shapes(random, greatest=4)], (dtype,))


def sum_of_many(kind, random, dtype):
    shape = any_shape(random)
    return of_one(kind, [(dtype, shape)] * int(random.integers(2, 6)), (dtype,))


def prelu(kind, random, dtype):
    shape = any_shape(random, 2, 4)
    data = (dtype, shape, *quantised(random, dtype))
    slopes = tuple(n if random.random() < 0.5 else 1 for n in shape[1:]) if random.random() < 0.7 else shape
    if dtype == "float32":
        slope = (random.standard_normal(slopes).astype(np.float32),)
    else:
        of_slope = "int8" if dtype == "int16" else dtype
        limits = np.iinfo(of_slope)
        array = random.integers(limits.min, limits.max + 1, slopes).astype(of_slope)
        slope = (array, *quantised(random, of_slope, 0.3))
    return of_one(kind, [data, slope], (dtype, *quantised(random, dtype, 2.0)))


def comparison(kind, random, dtype):
    scale = quantised(random, dtype)
    inputs = []
    for shape in broadcast_shapes(random, greatest=4):
        inputs.append((dtype, shape, *scale))
        if random.random() < 0.7:
            scale = quantised(random, dtype)
    return of_one(kind, inputs, ("bool",))


def logic(kind, random, dtype):
    shapes = broadcast_shapes(random, 1 if kind == "LOGICAL_NOT" else 2, greatest=4)
    return of_one(kind, [(dtype, shape) for shape in shapes], (dtype,))


def selection(kind, random, dtype):
    """The conditions have more than one element: else LiteRT takes the result's shape from the file."""
    if kind == "SELECT":
        shape = (2, *any_shape(random, 1, 4))
        shapes = [[shape, shape[:1], ()][int(random.integers(0, 3))], shape, shape]
    else:
        shapes = broadcast_shapes(random, 3, 4)
        shapes[0] = (2, *(1,) * (4 - len(shapes[0])), *shapes[0])
    scale = quantised(random, dtype)
    return of_one(kind, [("bool", shapes[0]), *((dtype, shape, *scale) for shape in shapes[1:])], (dtype, *scale))


def unsigned_cases(graph, random):
    return [[np.abs(a) if a.dtype == np.uint32 else a for a in case] for case in cases_of(graph, random)]


def power_cases(graph, random):
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


def close_cases(graph, random):
    def close(array):
        return np.rint(array) if array.dtype == np.float32 else np.rint(array / 40).astype(array.dtype)

    return [[a if a.dtype == bool else close(a) for a in case] for case in cases_of(graph, random)]


NONZERO, CLOSE = {"cases": nonzero_cases}, {"cases": close_cases}
FAMILIES = {
    **dict.fromkeys(("ADD", "SUB", "MINIMUM", "MAXIMUM"), (arithmetic, NUMBERS, {})),
    "MUL": (arithmetic, [*NUMBERS, "uint32"], {"cases": unsigned_cases}),
    "DIV": (arithmetic, NUMBERS[:-1], NONZERO),
    "SQUARED_DIFFERENCE": (arithmetic, ["float32", "int8", "int32"], {}),
    "FLOOR_DIV": (plain, ["float32", "int8", "int16", "int32"], NONZERO),
    "FLOOR_MOD": (plain, ["float32", "int8", "int16", "int32", "int64"], NONZERO),
    "POW": (plain, ["float32", "int32"], {"bound": bound_of("POW"), "cases": power_cases}),
    "ATAN2": (plain, ["float32"], {"bound": bound_of("ATAN2")}),
    "ADD_N": (sum_of_many, ["float32", "int32"], {"bound": bound_of("ADD_N")}),
    "PRELU": (prelu, ["float32", *QUANTISED], {}),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), (comparison, [*NUMBERS, "bool"], CLOSE)),
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), (comparison, NUMBERS, CLOSE)),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"), (logic, ["bool"], {})),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (selection, [*NUMBERS, "uint32", "bool"], {})),
}
"""The builder, function(kind, random, dtype), the dtypes and the options of each operator."""


@pytest.mark.parametrize("kind", FAMILIES)
def test_operators(kind, tmp_path):
    build, dtypes, options = FAMILIES[kind]
    check_dtypes(lambda random, dtype: build(kind, random, dtype), dtypes, tmp_path, kind, **options)


def test_int16_without_a_scale(tmp_path):
    def build(random, kind):
        inputs = [("int16", shape) for shape in broadcast_shapes(random)]
        return of_one(kind, inputs, ("int16",), **activation(random))

    check_dtypes(build, ["MUL", "ADD"], tmp_path, "int16")


def test_high_products(tmp_path):
    """int16 inputs with an 8-bit result."""

    def build(random, dtype):
        shape = any_shape(random)
        inputs = [("int16", shape, *quantised(random, "int16")) for _ in range(2)]
        return of_one("MUL", inputs, (dtype, *quantised(random, dtype)), **activation(random))

    check_dtypes(build, ["int8", "uint8"], tmp_path, "high products")


def test_shared_helpers(tmp_path):
    """A quotient and a high product, which is not close to 0, in one file: both call doubled_high()."""

    def build(random):
        model = Model()
        one, other = (model.input("int16", (2, 3), 0.001) for _ in range(2))
        product = model.operator("MUL", [one, other], ("int8", 0.05, 0))
        divisor = model.constant(random.integers(40, 100, (2, 3)).astype(np.int8), 0.05, 0)
        return model.ending_with("DIV", [product, divisor], ("int8", 0.02, 0))

    def cases(graph, random):
        return [[random.integers(25000, 32768, one.shape).astype(np.int16) for one in graph.inputs] for _ in range(2)]

    check_configurations(build, tmp_path, seed=5, count=2, cases=cases)


@pytest.mark.filterwarnings("ignore:Warning. Enabling `experimental_preserve_all_tensors`")
def test_overflow(tmp_path):
    """LiteRT's default kernels have infinity, its reference kernels the greatest number."""

    def build(random):
        model = Model()
        data = model.input("float32", (2, 4))
        return model.ending_with("MUL", [data, data], ("float32",), fused_activation_function="NONE")

    case = [np.asarray([[1e30, -1e30, 1, 2], [3, 4, 5, 6]], np.float32)]
    [[expected]] = litert(build(None).build(), [case])
    assert expected.max() == np.finfo(np.float32).max
    check_configurations(build, tmp_path, seed=1, count=1, resolver="AUTO", cases=lambda graph, random: [case])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_one_constant_makes_a_table(dtype, tmp_path):
    def build(random, kind):
        model = Model()
        data = model.input(dtype, any_shape(random), *quantised(random, dtype))
        shape = [(), (1,), (1, 1)][int(random.integers(0, 3))]
        low, high = (0, 256) if dtype == "uint8" else (-128, 128)
        constant = model.constant(random.integers(low, high, shape).astype(dtype), *quantised(random, dtype))
        inputs = [data, constant] if random.random() < 0.5 else [constant, data]
        return model.ending_with(kind, inputs, (dtype, *quantised(random, dtype, 2.0)), **activation(random))

    check_dtypes(build, ["ADD", "SUB", "MUL"], tmp_path, "one constant")
    for number, kind in enumerate(("ADD", "SUB", "MUL")):
        [operation] = program_of(graph_of(build(np.random.default_rng(number), kind).build())).operations
        assert isinstance(operation.function, Lookup | Clamped), kind
        assert len(operation.inputs) == 1
