# SPDX-License-Identifier: Apache-2.0
"""Float models that tests make, with samples and classes."""

import numpy as np
from models.made import Model
from models.oracle import litert

FLOAT = ("float32",)


def array(random, *shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def classifier(seed=5, outlier=1.0, classes=6):
    """Return a model of two convolutions, a pool and a dense layer; channel 0 of the first result is `outlier` larger.

    The second convolution reads that channel with a weight of 0: only the range of the tensor depends on it.
    """
    random = np.random.default_rng(seed)
    model = Model()
    image = model.input("float32", (1, 8, 8, 3), name="image")
    first = array(random, 8, 3, 3, 3, scale=0.3)
    first[0] *= outlier
    second = array(random, 8, 3, 3, 8, scale=0.2)
    second[:, :, :, 0] = 0
    window = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    wide = model.operator("CONV_2D", [image, model.constant(first), model.constant(array(random, 8))], FLOAT, **window)
    inner = model.operator(
        "CONV_2D",
        [wide, model.constant(second), model.constant(array(random, 8))],
        FLOAT,
        **window,
        fused_activation_function="RELU",
    )
    mean = model.operator(
        "AVERAGE_POOL_2D", [inner], FLOAT, padding="VALID", filter_width=8, filter_height=8, stride_w=8, stride_h=8
    )
    flat = model.operator("RESHAPE", [mean, model.constant(np.array([1, 8], np.int32))], FLOAT)
    dense = [
        flat,
        model.constant(array(random, classes, 8, scale=2.0)),
        model.constant(array(random, classes, scale=0.1)),
    ]
    scores = model.operator("FULLY_CONNECTED", dense, FLOAT)
    model.ending_with("SOFTMAX", [scores], FLOAT, beta=1.0)
    model.graph.outputs[0].name = "scores"
    return model.build()


def samples_of(count, seed=6, shape=(8, 8, 3)):
    """Return images with a colour and a texture each, [count, *shape]."""
    random = np.random.default_rng(seed)
    colours = array(random, count, 1, 1, shape[-1], scale=1.5)
    return (colours + array(random, count, *shape)).astype(np.float32)


def classes_by(content, images):
    """Return the class of each image by the float model."""
    return np.array([outputs[0].argmax() for outputs in litert(content, [[image[None]] for image in images])])
