# SPDX-License-Identifier: Apache-2.0
"""Layers with a state, in sequences of runs, against LiteRT; where it refuses a file, tflite-micro's rule."""

import math
import re

import numpy as np
import pytest
from models.campaigns import check_family, refusal, seed_of, sequences
from models.layers import byte_lstm, float_lstm, micro_lstm
from models.made import Model
from models.micro_rules import micro_lstm as micro_lstm_rule
from models.micro_rules import micro_svdf
from models.oracle import litert
from opwest.compiler.semantics import fixed_point


def svdf(random, dtype, hybrid=False):
    model = Model()
    batch, length, rank = int(random.choice([1, 2])), int(random.integers(1, 9)), int(random.integers(1, 4))
    units, memory = int(random.integers(1, 6)), int(random.integers(1, 7))
    filters = units * rank
    options = {"version": 3, "rank": rank, "fused_activation_function": "RELU"}
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
        return model.ending_with("SVDF", [data, feature, time, bias, state], (dtype,), **options)
    data = model.input(dtype, (batch, length), 0.05, int(random.integers(-40, 40)))
    feature = model.constant(random.integers(-127, 128, (filters, length)).astype(np.int8), 0.02)
    time = model.constant(random.integers(-32767, 32768, (filters, memory)).astype(np.int16), 3e-5)
    scale = float(np.float32(0.05) * np.float32(0.02) * 70 * 75 * np.sqrt(length) / 12000)
    state = model.variable("int16", (batch, filters * memory), scale)
    sums = random.integers(-(10**7), 10**7, units).astype(np.int32)
    bias = model.constant(sums, np.float32(scale) * np.float32(3e-5))
    target = scale * 3e-5 * 12000 * 18000 * np.sqrt(rank * memory) / 50
    result = (dtype, float(target), int(random.integers(-40, 40)))
    return model.ending_with("SVDF", [data, feature, time, bias, state], result, **options)


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
    return model.ending_with("SVDF", [data, feature, time, bias, state], result, version=4, **options)


STATES = {
    "SVDF float32": (litert, svdf, "float32"),
    "SVDF int8": (litert, svdf, "int8"),
    "SVDF hybrid": (litert, svdf, "float32", True),
    "SVDF with an int8 state": (micro_svdf, small_svdf),
    "LSTM float32": (litert, float_lstm),
    "LSTM hybrid": (litert, float_lstm, True),
    "LSTM int8": (litert, byte_lstm),
    "LSTM int8 of tflite-micro": (micro_lstm_rule, micro_lstm, "int8"),
    "LSTM int16 of tflite-micro": (micro_lstm_rule, micro_lstm, "int16"),
}
"""The oracle, the builder and its words."""


@pytest.mark.parametrize("name", STATES)
def test_states(name, tmp_path):
    oracle, make, *words = STATES[name]
    check_family(tmp_path, make, *words, seed=seed_of(name), cases=sequences, oracle=oracle, steps=True)
    if make is micro_lstm:  # the reason for the other oracle
        with pytest.raises(RuntimeError):
            litert(make(np.random.default_rng(1), *words).build(), [])


def test_factors_of_the_exponential():
    for width, (*_, factors) in fixed_point.EXPONENTIALS.items():
        assert tuple(round(2 ** (width - 1) * math.exp(-(2.0**power))) for power in range(-2, 5)) == factors


def test_svdf_with_scales_above_the_range_of_float32():
    model = svdf(np.random.default_rng(0), "int8")
    for tensor in model.graph.tensors[:2]:
        tensor.scale = 1e38
    assert "the scales give the multiplier inf" in refusal(model)


def changed(make, inputs, **options):
    """Return the model of a layer with four gates, with other inputs and options."""
    random = np.random.default_rng(5)
    model = make(random)
    while model.graph.operators[0][1][1] is None:
        model = make(random)
    [(kind, given, results, found)] = model.graph.operators
    for number, one in inputs.items():
        given[number] = one(model) if callable(one) else one
    model.graph.operators[0] = (kind, given, results, {**found, **options})
    return model


@pytest.mark.parametrize(
    ("make", "inputs", "options", "text"),
    [
        (float_lstm, {12: None}, {}, "an input gate without weights or bias"),
        (float_lstm, {}, {"fused_activation_function": "NONE"}, "fused activation NONE"),
        (float_lstm, {}, {"cell_clip": -1.0}, "a negative limit"),
        (float_lstm, {6: lambda m: m.constant(np.zeros(3, np.float32))}, {}, "diagonal weights of the last result"),
        (float_lstm, {14: lambda m: m.constant(np.zeros(7, np.float32))}, {}, r"weights '.*' \[7\]"),
        (float_lstm, {18: lambda m: m.constant(np.zeros(7, np.float32))}, {}, "is not a variable tensor"),
        (byte_lstm, {}, {"fused_activation_function": "RELU"}, "fused activation RELU"),
        (byte_lstm, {19: lambda m: m.variable("int16", (1,), 0.001)}, {}, "elements?|have the scale"),
    ],
)
def test_refused(make, inputs, options, text):
    assert re.search(text, refusal(changed(make, inputs, **options)))
