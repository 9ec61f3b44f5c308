# SPDX-License-Identifier: Apache-2.0
"""Scales from 1e-7 to 1e3 and zero points at both ends: the interpreter against LiteRT, all values of 8 bits.

Where limits or sums do not fit in int32, LiteRT has no defined result: results have at least 1/300 of the scale of an
operand. HARD_SWISH has 16-bit numbers, and any scale.
"""

import numpy as np
import pytest
from campaign import sized
from requirements_support import need

need("tflite", "ai_edge_litert")

from models.campaigns import graph_of  # noqa: E402
from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402

BYTES = ("int8", "uint8")
WORDS = (*BYTES, "int16")
UNARY = {
    "HARD_SWISH": BYTES,
    "LEAKY_RELU": WORDS,
    "RELU": WORDS,
    "RELU6": WORDS,
    "RELU_N1_TO_1": BYTES,
    "QUANTIZE": WORDS,
    "ABS": ("int8", "int16"),
}
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
    """Return a model over all values of 8 bits, or pairs of values, and its inputs."""
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
    model.output(model.operator(kind, given, (dtype, scale, zero), **options))
    return model.build(), inputs


@pytest.mark.parametrize(("kind", "dtype"), ROWS)
def test_extreme_scales(kind, dtype):
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
            [found] = outputs_of(graph, run_graph(graph, inputs))
        except Exception as error:
            assert "Unsupported" in type(error).__name__ or "scale" in str(error), (number, error)
            refused += 1
            continue
        compared += 1
        differ = np.flatnonzero(wanted.reshape(-1) != found.reshape(-1))
        [node] = graph.nodes
        assert not len(differ), (number, len(differ), node.input(0).quantization, node.output.quantization)
    assert compared > 4 * refused, (compared, refused)
