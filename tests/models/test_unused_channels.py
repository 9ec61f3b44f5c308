# SPDX-License-Identifier: Apache-2.0
"""Channels that are constant or not read: they are removed, and the results do not change."""

import numpy as np
import pytest
from campaign import sized
from models.campaigns import graph_of
from models.executor import Library
from models.made import Model
from opwest.diagnostics import Diagnostics
from opwest.importers.models.graph.types import Rules
from opwest.importers.models.interpret.run import outputs_of, run_graph
from opwest.importers.models.ir.operations import Convolution, Depthwise
from opwest.importers.models.lower.lower import lower_graph, with_passes
from requirements_support import need

need("cc", "tflite")
ZERO = -128


def layer(model, random, data, kind, results, dead, scale=0.05, zero=ZERO, **options):
    """Append a layer whose channels `dead` have weights of 0, and a large bias below zero or above."""
    channels = data_channels[data]
    shape = (1, 3, 3, channels) if kind == "DEPTHWISE_CONV_2D" else (results, 1, 1, channels)
    weights = random.integers(-127, 128, shape).astype(np.int8)
    bias = random.integers(-900, 900, results).astype(np.int32)
    scales = random.uniform(0.001, 0.002, results)
    for place, value in dead.items():
        weights[(..., place) if kind == "DEPTHWISE_CONV_2D" else place] = 0
        bias[place] = value
        scales[place] *= 2.0**-20
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    w = model.constant(weights, scales, 0, axis)
    b = model.constant(bias, data.scale * scales, 0)
    if kind == "DEPTHWISE_CONV_2D":
        options["depth_multiplier"] = 1
    result = model.operator(
        kind,
        [data, w, b],
        ("int8", scale, zero),
        padding="SAME",
        stride_h=1,
        stride_w=1,
        fused_activation_function="RELU" if zero == ZERO else "NONE",
        **options,
    )
    data_channels[result] = results
    return result


data_channels = {}


def separable(random, dead, between, zero=ZERO):
    """Return a model: 1x1, depthwise, 1x1; `dead` channels of the first, `between` of the depthwise layer."""
    model = Model()
    data = model.input("int8", (1, 6, 5, 8), 0.05, 3)
    data_channels[data] = 8
    one = layer(model, random, data, "CONV_2D", 16, dead, zero=zero)
    two = layer(model, random, one, "DEPTHWISE_CONV_2D", 16, between, zero=zero)
    model.output(layer(model, random, two, "CONV_2D", 8, {}))
    return model


def lowered(model):
    graph = graph_of(model.build(), Rules())
    return graph, with_passes(lower_graph(graph, "test", Diagnostics()))


def check(model, random, folder, count):
    """Compare the emitted program with the interpreter of the graph, which has all channels."""
    graph, program = lowered(model)
    library = Library([program], folder)
    for _ in range(count):
        inputs = [random.integers(-128, 128, one.shape).astype(np.int8) for one in graph.inputs]
        expected = outputs_of(graph, run_graph(graph, inputs))
        for one, other in zip(expected, library.run(0, inputs), strict=True):
            np.testing.assert_array_equal(one, other)
    return program


def channels_of(program):
    return [one.results[0].shape[3] for one in program.operations if isinstance(one, Convolution | Depthwise)]


def test_constant_channels_are_removed(tmp_path):
    random = np.random.default_rng(1)
    dead = dict.fromkeys(range(3, 11), -(1 << 30))
    program = check(separable(random, dead, {}), random, tmp_path, 20)
    assert channels_of(program) == [8, 8, 8]


def test_channels_without_readers_are_removed(tmp_path):
    random = np.random.default_rng(2)
    program = check(separable(random, {}, dict.fromkeys(range(12), -(1 << 30))), random, tmp_path, 20)
    assert channels_of(program) == [4, 4, 8]


def test_a_constant_beside_the_zero_point_remains_under_padding(tmp_path):
    """The padding of the depthwise layer has another value than the constant channel."""
    random = np.random.default_rng(3)
    program = check(separable(random, dict.fromkeys(range(8), 1 << 30), {}), random, tmp_path, 20)
    assert channels_of(program) == [16, 16, 8]


@pytest.mark.parametrize("zero", [ZERO, 7])
def test_random_models(tmp_path, zero):
    for seed in range(sized(3, 8)):
        random = np.random.default_rng(seed)
        some = {int(one): int(random.choice([-(1 << 30), 1 << 30, 0])) for one in random.integers(0, 16, 9)}
        others = {int(one): int(random.choice([-(1 << 30), 1 << 30, 0])) for one in random.integers(0, 16, 5)}
        (tmp_path / str(seed)).mkdir()
        check(separable(random, some, others, zero), random, tmp_path / str(seed), 4)


def test_one_channel_remains_if_all_are_constant(tmp_path):
    random = np.random.default_rng(5)
    program = check(separable(random, dict.fromkeys(range(16), -(1 << 30)), {}), random, tmp_path, 3)
    assert channels_of(program) == [4, 4, 8]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_constant_that_exceeds_the_bias_remains(sign, tmp_path):
    """The bias and the constant channel have a sum of 33 bits; the other channel returns it to 32 bits."""
    random, model = np.random.default_rng(6), Model()
    data = model.input("int8", (1, 4, 4, 1), 0.05, -128)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "NONE"}
    # Channel 0 is 72 to 98, channel 1 is 127; real zero is -128.
    weights = model.constant(np.asarray([1, 0], np.int8).reshape(2, 1, 1, 1), 0.1)
    bias = model.constant(np.asarray([2000, 1 << 30], np.int32), 0.05 * 0.1)
    both = model.operator("CONV_2D", [data, weights, bias], ("int8", 0.05, -128), **options)
    weights = model.constant(np.asarray([-127 * sign, 50 * sign], np.int8).reshape(1, 1, 1, 2), 0.01)
    bias = model.constant(np.asarray([sign * ((1 << 31) - 1000)], np.int32), 0.05 * 0.01)
    model.output(model.operator("CONV_2D", [both, weights, bias], ("int8", 2e5, 0), **options))
    program = check(model, random, tmp_path, 2)
    assert channels_of(program) == [2, 1]
