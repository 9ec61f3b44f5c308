# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators where C or LiteRT have no defined result: the emitted C agrees with the interpreter."""

import itertools
import os
import traceback

import numpy as np
import pytest
from campaign import sized
from models.campaigns import graph_of, lowering_fault
from models.executor import Library, interpreted, program_of
from models.made import Model, of_one
from models.oracle import litert
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.check import check_graph
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.lowering.passes import with_passes
from opwest.compiler.reference.run import run_graph
from opwest.frontends.tflite.read import read_tflite
from opwest.imports.vectors import make_vectors

TRAPS = ("-fsanitize=undefined,float-cast-overflow", "-fsanitize-undefined-trap-on-error")
WHOLE = ["int8", "int16", "int32", "int64"]
QUANTISED = {"int8": (0.05, 3), "uint8": (0.05, 130), "int16": (0.001, 0), "int32": (0.002, 7)}


def edges(dtype):
    if dtype.startswith("float"):
        values = [0, -0.0, 0.5, -0.5, 2.5, -2.5, 126.5, -128.5, 3e9, -3e9, 2.0**63, -(2.0**63), 1e30, -1e30]
        return np.asarray([*values, np.inf, -np.inf, np.nan], dtype)
    limits = np.iinfo(dtype)
    values = {limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3, 7, 31}
    values |= {-one for one in (1, 2, 3, 7, 31)} if limits.min < 0 else set()
    return np.asarray(sorted(values), dtype)


DIVISIONS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")


def add(model, kind, dtypes, result, quantised=False, **options):
    """Add an operator over all pairs of edges, or over all edges; return its inputs."""
    arrays = []
    for place, dtype in enumerate(dtypes):
        values = edges(dtype)
        if kind in DIVISIONS and place == 1:
            values = values[values != (QUANTISED[dtype][1] if quantised else 0)]
        shape = [1] * len(dtypes)
        shape[place] = len(values)
        arrays.append(values.reshape(shape))
    given = [model.input(a.dtype, a.shape, *(QUANTISED.get(str(a.dtype), ()) if quantised else ())) for a in arrays]
    for one, array in zip(given, arrays, strict=True):
        one.dtype = str(array.dtype)
    target = QUANTISED.get(result, ()) if quantised or kind == "QUANTIZE" else ()
    model.output(model.operator(kind, given, (result, *target), **options))
    return arrays


def cases(model):
    for kind, dtype in itertools.product(["ADD", "SUB", "MUL"], ["int32", "int64"]):
        yield from add(model, kind, [dtype] * 2, dtype)
    yield from add(model, "MUL", ["uint32"] * 2, "uint32", fused_activation_function="RELU6")
    whole = {"DIV": ["int32"], "FLOOR_DIV": WHOLE[:3], "FLOOR_MOD": WHOLE, "POW": ["int32"]}
    whole |= {"SQUARED_DIFFERENCE": ["int32"], "NEG": WHOLE, "ABS": ["int16", "int32"], "SIGN": ["int32"]}
    for kind, dtype in [(kind, dtype) for kind, dtypes in whole.items() for dtype in dtypes]:
        yield from add(model, kind, [dtype] * (1 if kind in ("NEG", "ABS", "SIGN") else 2), dtype)
    for kind, dtype in itertools.product(["MUL", "DIV", "SUB"], ["int8", "uint8", "int16"]):
        yield from add(model, kind, [dtype] * 2, dtype, quantised=True)
    for kind, dtype in itertools.product(["SQRT", "RSQRT", "LOG", "EXP"], ["int8", "int16"]):
        yield from add(model, kind, [dtype], dtype, quantised=True)
    for target in ("int8", "uint8", "int16"):
        yield from add(model, "QUANTIZE", ["float32"], target)
    for source, target in (("int32", "int8"), ("int32", "int16"), ("int16", "int32"), ("int8", "int32")):
        yield from add(model, "QUANTIZE", [source], target, quantised=True)
    targets = [*WHOLE, "uint8", "uint16", "uint32", "bool"]
    for source, target in itertools.product(["float32", "float64", "int64", "uint32"], targets):
        if source != target:
            yield from add(model, "CAST", [source], target, in_data_type=source, out_data_type=target)


def compare(folder):
    """Compare the emitted C, compiled so that undefined behaviour ends the process, with the interpreter."""
    model = Model()
    inputs = list(cases(model))
    graph = graph_of(model.build())
    results = Library([program_of(graph)], folder, TRAPS).run(0, inputs)
    expected = interpreted(graph, inputs)
    for node, wanted, found in zip(graph.nodes, expected, results, strict=True):
        assert np.array_equal(found.reshape(wanted.shape), wanted), (node.label, found, wanted)


def test_edges_are_defined(tmp_path):
    """In a child process, which undefined behaviour ends with a signal."""
    child = os.fork()
    if child == 0:
        try:
            compare(tmp_path)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


DIVIDED = [
    ("DIV", "int32", None), ("DIV", "int8", 3), ("DIV", "uint8", 7), ("DIV", "int16", 0),
    *(("FLOOR_DIV", dtype, None) for dtype in ("int8", "int16", "int32", "float32")),
    *(("FLOOR_MOD", dtype, None) for dtype in ("int8", "int16", "int32", "int64")),
]  # fmt: skip


def division(kind, dtype, zero, constant=None):
    numbers = () if zero is None else (0.1, zero)
    divisor = (dtype, (1, 4), *numbers) if constant is None else (constant, *numbers)
    return of_one(kind, [(dtype, (2, 4), *numbers), divisor], (dtype, *numbers))


@pytest.mark.parametrize(("kind", "dtype", "zero"), DIVIDED)
def test_divisions_by_zero(kind, dtype, zero, tmp_path):
    """LiteRT fails the run; the emitted C returns -EINVAL, and the interpreter raises ValueError."""
    content = division(kind, dtype, zero).build()
    graph = graph_of(content)
    library = Library([program_of(graph)], tmp_path)
    data, divisor = np.arange(1, 9).reshape(2, 4).astype(dtype), np.asarray([[2, 5, 9, 4]]).astype(dtype)
    [[wanted]], [found] = litert(content, [[data, divisor]]), library.run(0, [data, divisor])
    assert np.array_equal(wanted, found.reshape(wanted.shape))
    for place in range(4):
        divisor[0, place] = zero or 0
        with pytest.raises(RuntimeError):
            litert(content, [[data, divisor]])
        with pytest.raises(OSError, match=r"\[Errno 22\]"):
            library.run(0, [data, divisor])
        with pytest.raises(ValueError, match="a divisor is 0"):
            run_graph(graph, [data, divisor])
    vectors, _ = make_vectors(graph, content, 4)
    assert vectors is not None and "LiteRT" in vectors.remark
    assert all((case[1] != (zero or 0)).all() for case in vectors.inputs)


@pytest.mark.parametrize(("kind", "dtype", "zero"), DIVIDED)
def test_constant_divisors(kind, dtype, zero, tmp_path):
    """A divisor without 0 needs no check; with 0 every run would fail."""
    divisor = np.asarray([[2, 5, 9, 4]]).astype(dtype)
    library = Library([program_of(graph_of(division(kind, dtype, zero, divisor).build()))], tmp_path)
    assert not library.emitted[0].steps[0].function.has_status
    divisor[0, 1] = zero or 0
    one = lowering_fault(division(kind, dtype, zero, divisor))
    assert one.message.endswith(": the divisor 'tensor_1' contains 0")
    assert one.expected == "a divisor without 0: every run would fail"


@pytest.mark.parametrize(
    ("kind", "dtype", "scale", "ratio", "limit"),
    [
        ("ADD", "int8", 1e-7, "1e+07", "524288"),
        ("ADD", "int16", 1e-5, "100000", "16384"),
        ("SUB", "uint8", 1e-7, "1e+07", "524288"),
        ("SQUARED_DIFFERENCE", "int8", 1e-5, "100000", "4096"),
    ],
)
def test_scales_with_which_litert_aborts(kind, dtype, scale, ratio, limit):
    """LiteRT's abort would end the import."""
    one = lowering_fault(of_one(kind, [(dtype, (1, 8), 1.0, 0)] * 2, (dtype, scale, 0)))
    what = "squared scale" if kind == "SQUARED_DIFFERENCE" else "scale"
    assert one.message.endswith(f": the {what} of the inputs is {ratio} times the scale of the result")
    assert one.expected == f"less than {limit} times"


def test_a_bias_beyond_32_bits_is_refused():
    """A sum of int16 data times a multiplier of 31 bits has 64: LiteRT and C would wrap."""
    weights, bias = np.ones((2, 4), np.int8), np.asarray([1 << 31, -(1 << 33)], np.int64)
    inputs = [("int16", (1, 4), 0.01, 0), (weights, 0.01), (bias, 1e-4)]
    one = lowering_fault(of_one("FULLY_CONNECTED", inputs, ("int16", 1.0, 0)))
    assert one.message.endswith(f": the bias 'tensor_2' has the value {-(1 << 33)}") and one.expected == "below 2**32"


def refused(kind, tensors, result, **options):
    [graph] = read_tflite(of_one(kind, tensors, result, **options).build())
    faults = Diagnostics()
    check_graph(graph, "made.tflite", faults)
    if not faults.has_errors:
        with pytest.raises(Exception):  # noqa: B017 - the messages are compared
            with_passes(lower_graph(graph, "made.tflite", faults))
    return "\n".join(map(str, faults))


INT8 = ("int8", (4,), 0.1, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("MUL", [("uint32", (4,))] * 2, ("uint32",), "RELU_N1_TO_1"), "fused activation RELU_N1_TO_1 of uint32"),
        (("PRELU", [("float32", (4,)), ("float32", (2, 4))], ("float32",)), "slopes [2, 4] for data [4]"),
        (("ADD_N", [("float32", (4,)), ("float32", (2,))], ("float32",)), "inputs [4] and [2]"),
        (
            ("ADD_N", [("float32", (4,))], ("float32",)),
            "unsupported dtypes float32\n  expected: float32, float32, float32... or int32",
        ),
        (("LOGISTIC", [INT8], ("int8", 0.1, 0)), "has the scale 0.1 and the zero point 0"),
        (("TANH", [("int16", (4,), 8.0, 0)], ("int16", 1 / 32768, 0)), "has the scale 8"),
        (("HARD_SWISH", [("int8", (4,), 0.5, 0)], ("int8", 0.001, 0)), "500 times that of the result"),
        (("QUANTIZE", [("int32", (4,), 0.1, 0)], ("uint8", 0.1, 0)), "int32 to uint8"),
        (("CAST", [("int32", (4,))], ("float16",)), "int32 to float16"),
        (("SELECT", [("bool", (2,)), ("int8", (4,)), ("int8", (4,))], ("int8",)), "condition [2] for [4]"),
        (("SELECT", [("bool", (4,)), ("int8", (4,)), ("int8", (2,))], ("int8",)), "shapes [4] and [2]"),
        (("ADD", [("int8", (4,)), INT8], ("int8", 0.1, 0)), "is int8 without a scale"),
        (("ADD", [("float32", (4,)), ("float32", (3,))], ("float32",)), "cannot be broadcast"),
    ],
)
def test_refusals(call, message):
    kind, tensors, result, *activation = call
    options = {"fused_activation_function": activation[0]} if activation else {}
    assert message in refused(kind, tensors, result, **options)


BYTES = ("int8", "uint8")
WORDS = (*BYTES, "int16")
UNARY = {
    "HARD_SWISH": BYTES, "LEAKY_RELU": WORDS, "RELU": WORDS, "RELU6": WORDS, "RELU_N1_TO_1": BYTES, "QUANTIZE": WORDS,
    "ABS": ("int8", "int16"),
}  # fmt: skip
BINARY = {"ADD": WORDS, "SUB": WORDS, "MUL": WORDS, "PRELU": BYTES}
ROWS = [(kind, dtype) for table in (UNARY, BINARY) for kind, dtypes in table.items() for dtype in dtypes]


def numbers(random, dtype, near=None, is_any=False):
    """Return a scale, near to another one, and a zero point."""
    limits = np.iinfo(dtype)
    scale = 10 ** random.uniform(-9 if is_any else -7, 3)
    if near is not None and (not is_any or random.random() < 0.66):
        scale = near * 10 ** random.uniform(-2.5, 2.5)
    zero = int(random.choice([limits.min, limits.max, random.integers(limits.min, limits.max + 1)]))
    return float(np.float32(scale)), 0 if dtype == "int16" else zero


def made(kind, dtype, random):
    """Return a model over all values of 8 bits, or pairs of values, and its inputs.

    Where limits or sums do not fit in int32, LiteRT has no defined result: results have at least 1/300 of the scale
    of an operand. HARD_SWISH has 16-bit numbers, and any scale.
    """
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1, 1 if dtype != "int16" else 97)
    model = Model()
    is_any = kind == "HARD_SWISH"
    first = numbers(random, dtype, None, is_any)
    data = model.input(dtype, (1, len(every)), *first)
    inputs = [every.reshape(1, -1).astype(dtype)]
    given, greatest = [data], first[0]
    if kind in BINARY:
        second = numbers(random, dtype, first[0])
        greatest = max(greatest, second[0])
        shape = (1, 1, len(every)) if kind == "PRELU" else (1, len(every))
        other = random.integers(limits.min, limits.max + 1, shape).astype(dtype)
        if kind == "PRELU":
            data.shape = (1, 1, 1, len(every))
            inputs[0] = inputs[0].reshape(data.shape)
            given.append(model.constant(other, *second))
        else:
            given.append(model.input(dtype, shape, *second))
            inputs.append(other)
    options = {"alpha": float(np.float32(random.choice([0.1, 0.01, -0.7, 1.5])))} if kind == "LEAKY_RELU" else {}
    if kind in ("ADD", "SUB", "MUL"):
        options["fused_activation_function"] = str(random.choice(["NONE", "RELU", "RELU6"]))
    if kind in ("ADD", "SUB") and dtype == "int16":
        options["pot_scale_int16"] = False
    scale, zero = numbers(random, dtype, greatest, is_any)
    scale = scale if is_any else max(scale, 4e-9)  # 6 has a stored value
    return model.ending_with(kind, given, (dtype, scale, zero), **options).build(), inputs


@pytest.mark.parametrize(("kind", "dtype"), ROWS)
def test_extreme_scales(kind, dtype):
    """Scales from 1e-7 to 1e3 and zero points at both ends: the interpreter against LiteRT."""
    random = np.random.default_rng([ROWS.index((kind, dtype)), 77])
    compared = refused = 0
    for number in range(sized(60, 3000)):
        content, inputs = made(kind, dtype, random)
        try:
            [[wanted]] = litert(content, [inputs])
        except (RuntimeError, ValueError):
            continue  # LiteRT refuses the scales
        try:
            graph = graph_of(content)
            [found] = interpreted(graph, inputs)
        except Exception as error:
            assert "Unsupported" in type(error).__name__ or "scale" in str(error), (number, error)
            refused += 1
            continue
        compared += 1
        differ = np.flatnonzero(wanted.reshape(-1) != found.reshape(-1))
        [node] = graph.nodes
        assert not len(differ), (number, len(differ), node.input(0).quantization, node.output.quantization)
    assert compared > 4 * refused, (compared, refused)
