# SPDX-License-Identifier: Apache-2.0
"""Parameters of ONNX operators with other shapes: refused with the shape that the operator requires."""

import numpy as np
import pytest
from requirements_support import need

need("onnx", "onnxruntime")

from models.onnx_support import Made  # noqa: E402
from models.test_onnx_refusals import one, refused  # noqa: E402


def zeros(*shape):
    return np.zeros(shape, np.float32)


def integers(*shape):
    return np.zeros(shape, np.uint8)


def recurrent(kind, gates, hidden=4, **shapes):
    """Return a layer [steps 2, batch 3, width 5], in which some parameters have other shapes."""
    right = {
        "W": (1, gates * hidden, 5), "R": (1, gates * hidden, hidden), "B": (1, 2 * gates * hidden),
        "initial": (1, 3, hidden),
    }  # fmt: skip
    if kind == "LSTM":
        right |= {"cell": (1, 3, hidden), "P": (1, 3 * hidden)}
    found = [zeros(*shapes.get(name, shape)) for name, shape in right.items()]
    found.insert(3, "")
    made = Made(17)
    made.output(made.add(kind, made.input(2, 3, 5), *found, results=2, hidden_size=hidden)[1])
    return made.model()


def chain(first, second):
    """Return two operators of which the first has a second reader, so that they stay two."""
    made = Made(13)
    y = made.add(first[0], made.input(1, 2, 4, 4), *first[1:])
    made.output(made.add(second[0], y, *second[1:]), made.add("Relu", y))
    return made.model()


def normalised(**shapes):
    right = dict.fromkeys(("scale", "bias", "mean", "variance"), (2,))
    return one("BatchNormalization", *(zeros(*shape) for shape in (right | shapes).values()), opset=13)


FOUND = {
    "LSTM weights": (lambda: recurrent("LSTM", 4, W=(1, 16, 6)), "'c0' with the shape [1, 16, 6]", "[1, 16, 5]"),
    "LSTM directions": (lambda: recurrent("LSTM", 4, R=(2, 16, 4)), "with the shape [2, 16, 4]", "[1, 16, 4]"),
    "LSTM bias": (lambda: recurrent("LSTM", 4, B=(32,)), "with the shape [32]", "[1, 32]"),
    "LSTM peepholes": (lambda: recurrent("LSTM", 4, P=(1, 11)), "with the shape [1, 11]", "[1, 12]"),
    "LSTM cell": (lambda: recurrent("LSTM", 4, cell=(1, 2, 4)), "with the shape [1, 2, 4]", "[1, 3, 4]"),
    "GRU": (lambda: recurrent("GRU", 3, R=(1, 12, 5)), "with the shape [1, 12, 5]", "[1, 12, 4]"),
    "RNN": (lambda: recurrent("RNN", 1, W=(4, 5)), "with the shape [4, 5]", "[1, 4, 5]"),
    "batch normalisation": (lambda: normalised(mean=(3,)), "input 3 'c2' with the shape [3]", "[2]"),
    "batch normalisation after a layer": (
        lambda: chain(
            ("Conv", zeros(2, 2, 1, 1)), ("BatchNormalization", zeros(2), zeros(2), zeros(2, 1), zeros(2))
        ),
        "with the shape [2, 1]",
        "[2]",
    ),
    "instance normalisation": (lambda: one("InstanceNormalization", zeros(3), zeros(2)), "the shape [3]", "[2]"),
    "group normalisation 18": (
        lambda: one("GroupNormalization", zeros(4), zeros(4), opset=18, shape=(1, 4, 2, 2), num_groups=2),
        "with the shape [4]",
        "[2]",
    ),
    "group normalisation 21": (
        lambda: one("GroupNormalization", zeros(2), zeros(2), opset=21, shape=(1, 4, 2, 2), num_groups=2),
        "with the shape [2]",
        "[4]",
    ),
    "layer normalisation": (lambda: one("LayerNormalization", zeros(3)), "'c0' with the shape [3]", "[4]"),
    "convolution": (lambda: one("Conv", zeros(3, 2, 1, 1), zeros(2)), "input 2 'c1' with the shape [2]", "[3]"),
    "transposed convolution": (
        lambda: one("ConvTranspose", zeros(2, 3, 1, 1), zeros(3), group=2), "with the shape [3]", "[6]"
    ),
    "quantised convolution": (
        lambda: one("ConvInteger", integers(3, 2, 1, 1), np.uint8(0), integers(2), data="uint8"),
        "with the shape [2]",
        "[] or [1] or [3]",
    ),
    "quantised product": (
        lambda: one("MatMulInteger", integers(4, 3), np.uint8(0), integers(4), data="uint8"),
        "with the shape [4]",
        "[] or [1] or [3]",
    ),
    "quantised product of several matrices": (
        lambda: one("MatMulInteger", integers(1, 2, 4, 3), data="uint8"),
        "with the shape [1, 2, 4, 3]",
        "[depth, results] or [depth]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_shapes_of_parameters(name):
    make, found, expected = FOUND[name]
    text = refused(make())
    assert f"{found}\n  expected: {expected}\n" in f"{text}\n" and "error: operator " in text, text
    assert text.count("error: ") == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: one("Celu", alpha=0.0), "alpha=0"),
        (lambda: one("DepthToSpace", blocksize=2), "blocksize 2, data [1, 2, 4, 4]"),
        (lambda: one("SpaceToDepth", blocksize=3), "blocksize 3, data [1, 2, 4, 4]"),
    ],
)
def test_attributes(make, message):
    text = refused(make())
    assert message in text and text.count("error: ") == 1, text
