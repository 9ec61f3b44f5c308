# SPDX-License-Identifier: Apache-2.0
"""Small TFLite files for TVM's importer, which needs the shapes of all tensors."""

import numpy as np
from models.made import Model


def average_pool(quantised=False):
    """Return a model that is one average pool, of float32 or int8."""
    model, kind = Model(), ("int8", 0.5, -3) if quantised else ("float32", None, 0)
    dtype, scale, zero = kind
    data = model.input(dtype, (1, 6, 6, 3), scale, zero, name="x")
    result = model._tensor(dtype, (1, 3, 3, 3), scale, zero, name="y")
    window = {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    model.output(model.operator("AVERAGE_POOL_2D", [data], result, **window))
    return model.build()


def magnitudes(signature):
    """Return a float model of one input, [1,1,4], with the shape signature `signature`."""
    model = Model()
    data = model.input("float32", (1, 1, 4), name="x", signature=signature)
    model.output(model.operator("ABS", [data], model._tensor("float32", (1, 1, 4), name="y")))
    return model.build()


def custom_operator():
    """Return a model with an unknown custom operator."""
    model = Model()
    data = model.input("float32", (1, 4), name="x")
    model.output(model.operator("MyOwn", [data], model._tensor("float32", (1, 4), name="y")))
    return model.build()


def float_operators():
    """Return a float model: a transposed convolution of channels last, then a dimension more, then magnitudes."""
    model, random = Model(), np.random.default_rng(4)

    def result(*shape):
        return model._tensor("float32", shape)

    data = model.input("float32", (1, 5, 5, 3), name="x")
    shape = model.constant(np.array([1, 10, 10, 2], np.int32))
    weights = model.constant(random.standard_normal((2, 3, 3, 3)).astype(np.float32))
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    wide = model.operator("TRANSPOSE_CONV", [shape, weights, data], result(1, 10, 10, 2), **options)
    more = model.operator("EXPAND_DIMS", [wide, model.constant(np.array([1], np.int32))], result(1, 1, 10, 10, 2))
    model.output(model.operator("ABS", [more], result(1, 1, 10, 10, 2)))
    return model.build()
