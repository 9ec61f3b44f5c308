# SPDX-License-Identifier: Apache-2.0
"""Layers with a state, in sequences of runs, against LiteRT."""

import math

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import cases_of, check_configurations, graph_of  # noqa: E402
from models.made import Model  # noqa: E402
from models.test_pools import seed_of  # noqa: E402
from opwest.diagnostics import Diagnostics  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.tflite.read import read_tflite  # noqa: E402


def svdf(random, dtype, hybrid=False):
    model = Model()
    batch, length, rank = int(random.choice([1, 2])), int(random.integers(1, 9)), int(random.integers(1, 4))
    units, memory = int(random.integers(1, 6)), int(random.integers(1, 7))
    filters = units * rank
    options = {"rank": rank, "fused_activation_function": "RELU"}
    if dtype == "float32":
        data = model.input(dtype, (batch, length))
        feature, time = (
            model.constant(random.integers(-127, 128, shape).astype(np.int8), float(random.uniform(0.005, 0.02)))
            if hybrid
            else model.constant(random.standard_normal(shape).astype(np.float32))
            for shape in ((filters, length), (filters, memory))
        )
        options["asymmetric_quantize_inputs"] = hybrid and bool(random.integers(0, 2))
        bias = model.constant(random.standard_normal(units).astype(np.float32)) if random.random() < 0.7 else None
        state = model.variable(dtype, (batch, filters * memory))
        options["fused_activation_function"] = str(random.choice(["NONE", "RELU", "RELU6"]))
        model.output(model.operator("SVDF", [data, feature, time, bias, state], (dtype,), version=3, **options))
        return model
    data = model.input(dtype, (batch, length), 0.05, int(random.integers(-40, 40)))
    feature = model.constant(random.integers(-127, 128, (filters, length)).astype(np.int8), 0.02)
    time = model.constant(random.integers(-32767, 32768, (filters, memory)).astype(np.int16), 3e-5)
    scale = float(np.float32(0.05) * np.float32(0.02) * 70 * 75 * np.sqrt(length) / 12000)
    state = model.variable("int16", (batch, filters * memory), scale)
    bias = model.constant(
        random.integers(-(10**7), 10**7, units).astype(np.int32), np.float32(scale) * np.float32(3e-5)
    )
    target = scale * 3e-5 * 12000 * 18000 * np.sqrt(rank * memory) / 50
    result = (dtype, float(target), int(random.integers(-40, 40)))
    model.output(model.operator("SVDF", [data, feature, time, bias, state], result, version=3, **options))
    return model


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_svdf(dtype, tmp_path):
    check_configurations(
        lambda random: svdf(random, dtype),
        tmp_path,
        seed=seed_of(dtype),
        bound=bound_of("SVDF"),
        cases=lambda graph, random: cases_of(graph, random, 5),
        steps=True,
    )


def test_svdf_with_scales_above_the_range_of_float32():
    model = svdf(np.random.default_rng(0), "int8")
    for tensor in model.graph.tensors[:2]:
        tensor.scale = 1e38
    [graph] = read_tflite(model.build())
    faults = Diagnostics()
    check_graph(graph, "m.tflite", faults)
    assert "the scales give the multiplier inf" in "\n".join(map(str, faults))


def test_hybrid_svdf(tmp_path):
    check_configurations(
        lambda random: svdf(random, "float32", hybrid=True),
        tmp_path,
        seed=6,
        bound=bound_of("SVDF hybrid"),
        cases=lambda graph, random: cases_of(graph, random, 5),
        steps=True,
    )


def small_svdf(random):
    """Return a model with an int8 state, which tflite-micro runs and LiteRT does not."""
    model = Model()
    batch, length, rank = int(random.choice([1, 2])), int(random.integers(1, 9)), int(random.integers(1, 4))
    units, memory = int(random.integers(1, 6)), int(random.integers(1, 7))
    filters = units * rank
    data = model.input("int8", (batch, length), 0.05, int(random.integers(-40, 40)))
    feature = model.constant(random.integers(-127, 128, (filters, length)).astype(np.int8), 0.02)
    time = model.constant(random.integers(-127, 128, (filters, memory)).astype(np.int8), 0.01)
    scale = float(0.05 * 0.02 * 70 * 75 * np.sqrt(length) / 50)
    state = model.variable("int8", (batch, filters * memory), scale, int(random.integers(-20, 20)))
    bias = model.constant(random.integers(-900, 900, units).astype(np.int32), scale * 0.01)
    result = ("int8", scale * 0.01 * 50 * 70 * float(np.sqrt(rank * memory)) / 50, int(random.integers(-40, 40)))
    options = {"rank": rank, "fused_activation_function": "RELU"}
    model.output(model.operator("SVDF", [data, feature, time, bias, state], result, version=4, **options))
    return model


def micro_svdf(content, cases, resolver, steps):
    """Return the results of tflite-micro's rule. Source: micro/kernels/svdf_common.cc, EvalIntegerSvdf."""
    node = graph_of(content).nodes[0]
    data, feature, time, bias, state = node.inputs
    rank, (filters, memory), (batch, length) = node.options["rank"], time.shape, data.shape
    zero, state_zero, target = data.quantization.zero, state.quantization.zero, node.output.quantization

    def times(value, real):
        fraction, shift = math.frexp(real)
        high = (value * math.floor(fraction * 2**31 + 0.5) + (1 << 30)) >> 31
        places = -shift
        rest = high & ((1 << places) - 1)
        return (high >> places) + (rest > (((1 << places) - 1) >> 1) + (high < 0))

    first = float(np.float32(data.quantization.scale) * np.float32(feature.quantization.scale))
    first = float(np.float32(first) / np.float32(state.quantization.scale))
    second = float(np.float32(state.quantization.scale) * np.float32(time.quantization.scale))
    second = float(np.float32(second) / np.float32(target.scale))
    kept = [state_zero] * (batch * filters * memory)
    results = []
    for [case] in cases:
        kept = [*kept[1:], kept[-1]]
        for b in range(batch):
            for f in range(filters):
                dot = sum(int(feature.content[f, k]) * (int(case[b, k]) - zero) for k in range(length))
                value = max(-128, min(127, times(dot, first))) + state_zero
                kept[(b * filters + f) * memory + memory - 1] = (value + 128) % 256 - 128
        found = np.zeros((batch, filters // rank), np.int8)
        for b in range(batch):
            for u in range(filters // rank):
                total = int(bias.content[u])
                for f in range(u * rank, (u + 1) * rank):
                    at = (b * filters + f) * memory
                    total += sum(int(time.content[f, k]) * (kept[at + k] - state_zero) for k in range(memory))
                found[b, u] = max(-128, min(127, times(total, second) + target.zero))
        results.append([found])
    return results


def test_svdf_with_an_int8_state(tmp_path):
    check_configurations(
        small_svdf,
        tmp_path,
        seed=4,
        cases=lambda graph, random: cases_of(graph, random, 5),
        oracle=micro_svdf,
        steps=True,
    )
