# SPDX-License-Identifier: Apache-2.0
"""Pools and normalisations in all dtypes, against LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import check_configurations, graph_of  # noqa: E402
from models.executor import Library  # noqa: E402
from models.layers import ACTIVATIONS, quantised  # noqa: E402
from models.made import Model  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.graph.types import Graph, Node, Quantization, Tensor  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph  # noqa: E402


def seed_of(*parts):
    return [ord(c) for c in "".join(parts)]


def pool(random, kind, dtype):
    model = Model()
    height, width = int(random.integers(1, 12)), int(random.integers(1, 14))
    shape = (int(random.choice([1, 1, 2])), height, width, int(random.integers(1, 9)))
    numbers = quantised(random, dtype)
    data = model.input(dtype, shape, *numbers)
    padding = str(random.choice(["SAME", "VALID"]))
    # Windows that cover the image, or are larger than it, are usual at the end of a network.
    extra = 4 if padding == "SAME" else 0
    size = [int(random.choice([n, random.integers(1, n + extra + 1)])) for n in (height, width)]
    options = {
        "padding": padding,
        "filter_height": size[0],
        "filter_width": size[1],
        "stride_h": int(random.integers(1, 4)),
        "stride_w": int(random.integers(1, 4)),
        "fused_activation_function": str(random.choice(ACTIVATIONS)),
    }
    model.output(model.operator(kind, [data], (dtype, *numbers), **options))
    return model


POOLS = [
    *((kind, dtype) for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D") for dtype in ("int8", "uint8", "int16", "float32")),
    ("L2_POOL_2D", "float32"),
]


@pytest.mark.parametrize(("kind", "dtype"), POOLS)
def test_pools(kind, dtype, tmp_path):
    check_configurations(
        lambda random: pool(random, kind, dtype), tmp_path, seed=seed_of(kind, dtype), bound=bound_of(kind)
    )


@pytest.mark.parametrize("kind", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pool_with_explicit_padding(kind, tmp_path):
    """Padding by numbers, which TFLite does not have: the elements of the padding do not count."""
    random = np.random.default_rng(1)
    numbers = Quantization((0.05,), (3,))
    data, result = Tensor("data", "int8", (1, 5, 6, 2), numbers), Tensor("result", "int8", (), numbers)
    options = {"padding": (1, 2, 0, 1), "filter_height": 3, "filter_width": 4, "stride_h": 2, "stride_w": 1}
    graph = Graph("", (data,), (result,), (Node(kind, (data,), (result,), options, "0 (pool)"),))
    faults = Diagnostics()
    check_graph(graph, "made", faults)
    assert not faults.has_errors
    library = Library([lower_graph(graph, "made", faults)], tmp_path)
    array = random.integers(-128, 128, data.shape).astype(np.int8)
    expected = np.zeros(result.shape, np.int8)
    assert result.shape == (1, 2, 6, 2)
    for y, x in np.ndindex(2, 6):
        part = array[0, max(0, 2 * y - 1) : 2 * y + 2, max(0, x - 2) : x + 2].astype(int).reshape(-1, 2)
        means = np.trunc((part.sum(0) + np.where(part.sum(0) > 0, 1, -1) * (len(part) // 2)) / len(part))
        expected[0, y, x] = means if kind.startswith("A") else part.max(0)
    np.testing.assert_array_equal(library.run(0, [array])[0], expected)
    np.testing.assert_array_equal(outputs_of(graph, run_graph(graph, [array]))[0], expected)


def row_shape(random):
    rank = int(random.integers(1, 5))
    return (*(int(n) for n in random.integers(1, 5, rank - 1)), int(random.integers(2, 40)))


SOFTMAX = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0), "float32": (None, 0)}
LOG_SOFTMAX = {"int8": (1 / 16, 127), "uint8": (1 / 16, 255), "float32": (None, 0)}
UNIT = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "float32": (None, 0)}


def normalisation(random, kind, dtype, result):
    model = Model()
    scale, zero = quantised(random, dtype)
    data = model.input(dtype, row_shape(random), scale, zero)
    options = {"beta": float(random.choice([1, 1, 0.3, 2.5]))} if kind == "SOFTMAX" else {}
    table = {"SOFTMAX": SOFTMAX, "LOG_SOFTMAX": LOG_SOFTMAX, "L2_NORMALIZATION": UNIT}[kind]
    numbers = table[result] if result == dtype else (1 / 65536, -32768)
    model.output(model.operator(kind, [data], (result, *numbers), **options))
    return model


NORMALISATIONS = [
    *(("SOFTMAX", dtype, dtype) for dtype in SOFTMAX),
    ("SOFTMAX", "int8", "int16"),
    ("SOFTMAX", "uint8", "int16"),
    *(("LOG_SOFTMAX", dtype, dtype) for dtype in LOG_SOFTMAX),
    *(("L2_NORMALIZATION", dtype, dtype) for dtype in UNIT),
]


@pytest.mark.parametrize(("kind", "dtype", "result"), NORMALISATIONS)
def test_normalisations(kind, dtype, result, tmp_path):
    check_configurations(
        lambda random: normalisation(random, kind, dtype, result),
        tmp_path,
        seed=seed_of(kind, dtype, result),
        bound=bound_of(kind),
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_softmax_rounds_halves(dtype, tmp_path):
    """Equal elements: 256 / n ends in exactly a half for several n."""

    def build(random):
        model = Model()
        data = model.input(dtype, (64, int(random.choice([3, 16, 256, 511, 6]))), 0.1, 0)
        model.output(model.operator("SOFTMAX", [data], (dtype, *SOFTMAX[dtype]), beta=1.0))
        return model

    def cases(graph, random):
        return [[(random.integers(0, 2, one.shape) * 100).astype(dtype) for one in graph.inputs] for _ in range(2)]

    check_configurations(build, tmp_path, seed=3, cases=cases)


@pytest.mark.parametrize("kind", ["SOFTMAX", "LOG_SOFTMAX"])
def test_long_rows(kind, tmp_path):
    """Sums that overflow in LiteRT: the limit of the real result."""

    def build(random):
        model = Model()
        data = model.input("int8", (2, 5000), 0.05, 0)
        numbers = SOFTMAX["int8"] if kind == "SOFTMAX" else LOG_SOFTMAX["int8"]
        options = {"beta": 1.0} if kind == "SOFTMAX" else {}
        model.output(model.operator(kind, [data], ("int8", *numbers), **options))
        return model

    def cases(graph, random):
        array = np.zeros((2, 5000), np.int8)
        array[1, :2] = 127, 125
        return [[array]]

    def oracle(content, given, resolver):
        """Equal elements: the logarithm of 4096. Others: the real results."""
        row = given[0][0][1] * 0.05
        real = row - np.log(np.exp(row).sum())
        rows = [[-np.log(4096)] * 5000, real]
        if kind == "SOFTMAX":
            return [[(np.round(256 * np.exp(rows)) - 128).astype(np.int8)]]
        return [[(127 + np.round(16 * np.array(rows))).astype(np.int8)]]

    check_configurations(build, tmp_path, seed=4, count=1, cases=cases, oracle=oracle)


def test_refused_normalisations():
    for kind, numbers, text in (
        ("SOFTMAX", (1 / 128, 0), "the scale 0.0078125 and the zero point 0"),
        ("LOG_SOFTMAX", (1 / 16, 0), "the scale 0.0625 and the zero point 0"),
        ("L2_NORMALIZATION", (1 / 100, 0), "the scale 0.01 and the zero point 0"),
    ):
        model = Model()
        data = model.input("int8", (1, 8), 0.1, 0)
        model.output(model.operator(kind, [data], ("int8", *numbers)))
        with pytest.raises(AssertionError, match=text):
            graph_of(model.build())
