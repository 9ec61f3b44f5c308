# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM in sequences of runs, against LiteRT; where it refuses a file, tflite-micro's rule."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import cases_of, check_configurations, graph_of  # noqa: E402
from models.lstms import byte_lstm, float_lstm, micro_lstm  # noqa: E402
from models.micro_lstm_rule import micro_lstm as micro_rule  # noqa: E402
from models.oracle import litert  # noqa: E402
from models.test_pools import seed_of  # noqa: E402


def test_float_lstm(tmp_path):
    check_configurations(float_lstm, tmp_path, seed=2, bound=bound_of("UNIDIRECTIONAL_SEQUENCE_LSTM"), steps=True)


def test_hybrid_lstm(tmp_path):
    check_configurations(
        lambda random: float_lstm(random, hybrid=True),
        tmp_path,
        seed=3,
        bound=bound_of("UNIDIRECTIONAL_SEQUENCE_LSTM hybrid"),
        steps=True,
    )


def test_byte_lstm(tmp_path):
    check_configurations(
        byte_lstm, tmp_path, seed=4, cases=lambda graph, random: cases_of(graph, random, 5), steps=True
    )


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_lstm_of_tflite_micro(dtype, tmp_path):
    check_configurations(
        lambda random: micro_lstm(random, dtype),
        tmp_path,
        seed=seed_of(dtype),
        cases=lambda graph, random: cases_of(graph, random, 3),
        oracle=micro_rule,
        steps=True,
    )


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_litert_refuses_lstms_of_tflite_micro(dtype):
    """The reason for the other oracle."""
    content = micro_lstm(np.random.default_rng(1), dtype).build()
    with pytest.raises(RuntimeError):
        litert(content, [])


def changed(make, inputs, **options):
    """Return the file of a layer with four gates, with other inputs and options."""
    random = np.random.default_rng(5)
    model = make(random)
    while model.graph.operators[0][1][1] is None:
        model = make(random)
    [(kind, given, results, found)] = model.graph.operators
    for number, one in inputs.items():
        given[number] = one(model) if callable(one) else one
    model.graph.operators[0] = (kind, given, results, {**found, **options})
    return model.build()


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
        (byte_lstm, {19: lambda m: m.variable("int16", (1,), 0.001)}, {}, "elements|have the scale"),
    ],
)
def test_refused(make, inputs, options, text):
    with pytest.raises(AssertionError, match=text):
        graph_of(changed(make, inputs, **options))
