# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers in all dtypes, against LiteRT."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.bounds import bound_of  # noqa: E402
from models.campaigns import check_configurations  # noqa: E402
from models.layers import KINDS  # noqa: E402
from models.made import Model  # noqa: E402


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind, dtype, tmp_path):
    check_configurations(
        lambda random: KINDS[kind](random, dtype), tmp_path, seed=[ord(c) for c in kind + dtype], bound=bound_of(kind)
    )


def twins(random, kind):
    """Return a model of two layers of equal shapes with other numbers: they share a function."""
    model = Model()
    shape = (1, 40) if kind == "FULLY_CONNECTED" else (1, 7, 6, 4)
    data = model.input("int8", shape, 0.05, int(random.integers(-128, 128)))
    weights_shape = {"FULLY_CONNECTED": (40, 40), "CONV_2D": (4, 3, 3, 4), "DEPTHWISE_CONV_2D": (1, 3, 3, 4)}[kind]
    padding = {} if kind == "FULLY_CONNECTED" else {"padding": str(random.choice(["SAME", "VALID"]))}
    if padding.get("padding") == "VALID":
        weights_shape = {"CONV_2D": (4, 1, 1, 4), "DEPTHWISE_CONV_2D": (1, 1, 1, 4)}[kind]
    if padding:
        padding.update(stride_h=1, stride_w=1)
    if kind == "DEPTHWISE_CONV_2D":
        padding["depth_multiplier"] = 1
    for _ in range(2):
        scale = float(random.uniform(0.001, 0.02))
        weights = model.constant(random.integers(-127, 128, weights_shape).astype(np.int8), scale)
        length = weights_shape[3] if kind == "DEPTHWISE_CONV_2D" else weights_shape[0]
        bias = model.constant(random.integers(-900, 900, length).astype(np.int32), scale * data.scale)
        wide = data.scale * scale * 70 * 70 * np.sqrt(np.prod(weights_shape[1:])) / 60
        activation = str(random.choice(["NONE", "NONE", "RELU"]))
        options = {"fused_activation_function": activation, **padding}
        data = model.operator(kind, [data, weights, bias], ("int8", wide, int(random.integers(-128, 128))), **options)
    model.output(data)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_equal_shapes_share_a_function(kind, tmp_path):
    found = check_configurations(lambda random: twins(random, kind), tmp_path, seed=[ord(c) for c in kind])
    texts = [one.source for one in found]
    assert any("numbers[0]" in text and text.count("void p") == 1 for text in texts)
