# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators where C or LiteRT have no defined result: the emitted C agrees with the interpreter."""

import itertools
import os
import traceback

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite")

from models.campaigns import graph_of, lowering_fault  # noqa: E402
from models.executor import Library  # noqa: E402
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph, with_passes  # noqa: E402
from opwest.importers.models.tflite.read import read_tflite  # noqa: E402
from opwest.importers.models.vectors import make_vectors  # noqa: E402

TRAPS = ("-fsanitize=undefined,float-cast-overflow", "-fsanitize-undefined-trap-on-error")
WHOLE = ["int8", "int16", "int32", "int64"]
QUANTISED = {"int8": (0.05, 3), "uint8": (0.05, 130), "int16": (0.001, 0), "int32": (0.002, 7)}


def edges(dtype):
    """Return the values around 0 and around the limits of a dtype."""
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
    """Yield the inputs of all operators."""
    for kind, dtype in itertools.product(["ADD", "SUB", "MUL"], ["int32", "int64"]):
        yield from add(model, kind, [dtype] * 2, dtype)
    yield from add(model, "MUL", ["uint32"] * 2, "uint32", fused_activation_function="RELU6")
    for kind, dtypes in {
        "DIV": ["int32"],
        "FLOOR_DIV": WHOLE[:3],
        "FLOOR_MOD": WHOLE,
        "POW": ["int32"],
        "SQUARED_DIFFERENCE": ["int32"],
    }.items():
        for dtype in dtypes:
            yield from add(model, kind, [dtype] * 2, dtype)
    for kind, dtypes in {"NEG": WHOLE, "ABS": ["int16", "int32"], "SIGN": ["int32"]}.items():
        for dtype in dtypes:
            yield from add(model, kind, [dtype], dtype)
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
    program = with_passes(lower_graph(graph, "made", Diagnostics()))
    results = Library([program], folder, TRAPS).run(0, inputs)
    expected = outputs_of(graph, run_graph(graph, inputs))
    for node, wanted, found in zip(graph.nodes, expected, results, strict=True):
        assert np.array_equal(found.reshape(wanted.shape), wanted), (node.label, found, wanted)


def test_edges_are_defined(tmp_path):
    """In a child process, which undefined behaviour ends with a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            compare(tmp_path)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


DIVIDED = [
    ("DIV", "int32", None), ("DIV", "int8", 3), ("DIV", "uint8", 7), ("DIV", "int16", 0),
    *(("FLOOR_DIV", dtype, None) for dtype in ("int8", "int16", "int32", "float32")),
    *(("FLOOR_MOD", dtype, None) for dtype in ("int8", "int16", "int32", "int64")),
]  # fmt: skip


def division(kind, dtype, zero, constant=None):
    """Return a model that divides [2,4] by [1,4]."""
    model, numbers = Model(), () if zero is None else (0.1, zero)
    data = model.input(dtype, (2, 4), *numbers)
    divisor = model.input(dtype, (1, 4), *numbers) if constant is None else model.constant(constant, *numbers)
    options = {"fused_activation_function": "NONE"} if kind == "DIV" else {}
    model.output(model.operator(kind, [data, divisor], (dtype, *numbers), **options))
    return model


@pytest.mark.parametrize(("kind", "dtype", "zero"), DIVIDED)
def test_divisions_by_zero(kind, dtype, zero, tmp_path):
    """LiteRT fails the run; the emitted C returns -EINVAL, and the interpreter raises ValueError."""
    content = division(kind, dtype, zero).build()
    graph = graph_of(content)
    library = Library([with_passes(lower_graph(graph, "made", Diagnostics()))], tmp_path)
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
    program = lower_graph(graph_of(division(kind, dtype, zero, divisor).build()), "made", Diagnostics())
    library = Library([program], tmp_path)
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
    model = Model()
    inputs = [model.input(dtype, (1, 8), 1.0, 0) for _ in range(2)]
    model.output(model.operator(kind, inputs, (dtype, scale, 0)))
    one = lowering_fault(model)
    what = "squared scale" if kind == "SQUARED_DIFFERENCE" else "scale"
    assert one.message.endswith(f": the {what} of the inputs is {ratio} times the scale of the result")
    assert one.expected == f"less than {limit} times"


def test_a_bias_beyond_32_bits_is_refused():
    """A sum of int16 data times a multiplier of 31 bits has 64: LiteRT and C would wrap."""
    model = Model()
    data = model.input("int16", (1, 4), 0.01, 0)
    weights = model.constant(np.ones((2, 4), np.int8), 0.01, 0)
    bias = model.constant(np.asarray([1 << 31, -(1 << 33)], np.int64), 1e-4, 0)
    options = {"fused_activation_function": "NONE"}
    model.output(model.operator("FULLY_CONNECTED", [data, weights, bias], ("int16", 1.0, 0), **options))
    one = lowering_fault(model)
    assert one.message.endswith(f": the bias 'tensor_2' has the value {-(1 << 33)}") and one.expected == "below 2**32"


def refused(kind, tensors, result, **options):
    model = Model()
    inputs = [model.input(*one) for one in tensors]
    model.output(model.operator(kind, inputs, result, **options))
    [graph] = read_tflite(model.build())
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
