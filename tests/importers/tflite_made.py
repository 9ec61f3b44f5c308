# SPDX-License-Identifier: Apache-2.0
"""Small TFLite files for TVM's importer, which needs the shapes of all tensors."""

import numpy as np
from models.made import Model


def average_pool(quantised=False):
    """Return a model that is one average pool, of float32 or int8."""
    window = {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    kind = ("int8", 0.5, -3) if quantised else ("float32",)
    return _one("AVERAGE_POOL_2D", (1, 6, 6, 3), (1, 3, 3, 3), *kind, **window)


def magnitudes(signature):
    """Return a float model of one input, [1,1,4], with the shape signature `signature`."""
    return _one("ABS", (1, 1, 4), (1, 1, 4), signature=signature)


def custom_operator():
    """Return a model with an unknown custom operator."""
    return _one("MyOwn", (1, 4), (1, 4))


def _one(kind, shape, result, dtype="float32", scale=None, zero=0, signature=None, **options):
    model = Model()
    data = model.input(dtype, shape, scale, zero, name="x", signature=signature)
    return model.ending_with(kind, [data], model._tensor(dtype, result, scale, zero, name="y"), **options).build()


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
