# SPDX-License-Identifier: Apache-2.0
"""Random configurations of operators that select by indices, as in `moves.py`.

Inputs with the attribute `limits` are indices below them; those with `small` have a few values around the data.
"""

import numpy as np
from models.made import Model
from models.moves import ALL, given, index_dtype, numbers, quantised, shape_of


def one_hot(random, dtype):
    """Indices of both signs; computed or constant values."""
    model, shape = Model(), shape_of(random, 1, 3)
    indices = model.input(index_dtype(random), shape)
    axis, depth = int(random.integers(0, len(shape) + 1)), int(random.integers(1, 6))
    axis = -1 if axis == len(shape) else axis
    on, off = (model.constant(np.asarray(v, dtype)) for v in (1, 0))
    if random.random() < 0.3:
        on = model.input(dtype, ())
    model.output(model.operator("ONE_HOT", [indices, numbers(model, depth), on, off], (dtype,), axis=axis))
    return model


def gather(random, dtype):
    """Computed or constant indices of all dtypes, batches, negative axes."""
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    axis = int(random.integers(0, len(shape)))
    batches = int(random.integers(0, axis + 1)) if random.random() < 0.5 else 0
    places = (*shape[:batches], *shape_of(random, 0, 2))
    indices = _indices(model, random, places, [shape[axis]], str(random.choice(["int16", "int32", "int64"])))
    if random.random() < 0.3:
        axis -= len(shape)
    if batches and random.random() < 0.3 and len(places) > batches:
        batches -= len(places)
    model.output(model.operator("GATHER", [data, indices], result, axis=axis, batch_dims=batches, version=4))
    return model


def _indices(model, random, shape, limits, dtype):
    """Return indices below the limits of the last dimension: constant, or an input with its limits."""
    if random.random() < 0.4:
        values = np.stack([random.integers(0, limit, shape) for limit in limits], axis=-1)
        return model.constant(values.reshape(shape if len(limits) == 1 else (*shape, len(limits))).astype(dtype))
    made = model.input(dtype, shape)
    made.limits = limits
    return made


def gather_nd(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    depth = int(random.integers(1, len(shape) + 1))
    indices = _tuples(model, random, shape_of(random, 0, 2), shape[:depth], str(random.choice(["int32", "int64"])))
    model.output(model.operator("GATHER_ND", [data, indices], result))
    return model


def _tuples(model, random, shape, limits, dtype):
    if random.random() < 0.4:
        values = np.stack([random.integers(0, limit, shape) for limit in limits], axis=-1)
        return model.constant(values.astype(dtype))
    made = model.input(dtype, (*shape, len(limits)))
    made.limits = limits
    return made


def embedding(random, dtype):
    """Rows; of int8 also as float32."""
    model, shape = Model(), shape_of(random, 2, 3)
    indices = _tuples(model, random, (int(random.integers(1, 6)),), [shape[0]], "int32")
    indices.shape = indices.shape[:1]
    if indices.content is not None:
        indices.content = indices.content.reshape(-1)
    if dtype == "hybrid":
        per_row = bool(random.integers(0, 2))
        scales = random.uniform(0.01, 0.1, shape[0] if per_row else 1)
        table = model.constant(random.integers(-128, 128, shape).astype(np.int8), scales)
        result = ("float32",)
    else:
        scale, zero = quantised(random, dtype)
        table = model.constant((random.standard_normal(shape) * 50).astype(dtype), scale, zero)
        result = (dtype, scale, zero)
    model.output(model.operator("EMBEDDING_LOOKUP", [indices, table], result))
    return model


def scatter(random, dtype):
    model, shape = Model(), shape_of(random, 1, 4)
    depth = int(random.integers(1, len(shape) + 1))
    places = shape_of(random, 1, 2)
    indices = _tuples(model, random, places, shape[:depth], "int32")
    updates, result = given(model, random, dtype, (*places, *shape[depth:]))
    inputs = [indices, updates, numbers(model, shape)]
    model.output(model.operator("SCATTER_ND", inputs, result))
    return model


def update_slice(random, dtype):
    """Starts inside and outside of the data, which LiteRT clamps."""
    model, shape = Model(), shape_of(random, 1, 4)
    data, result = given(model, random, dtype, shape)
    part = [int(random.integers(1, n + 1)) if random.random() < 0.7 else n for n in shape]
    update = model.input(dtype, part, *result[1:])
    kind = index_dtype(random)
    start = model.constant(random.integers(-2, 7, len(shape)).astype(kind))
    if random.random() < 0.6:
        start = model.input(kind, (len(shape),))
        start.small = True
    model.output(model.operator("DYNAMIC_UPDATE_SLICE", [data, update, start], result))
    return model


KINDS = {
    "GATHER": (gather, ALL),
    "GATHER_ND": (gather_nd, ALL),
    "EMBEDDING_LOOKUP": (embedding, ("float32", "int8", "uint8", "hybrid")),
    "SCATTER_ND": (scatter, ("float32", "int8", "uint8", "int32", "int64", "bool")),
    "DYNAMIC_UPDATE_SLICE": (update_slice, ALL),
    "ONE_HOT": (one_hot, ("float32", "int8", "uint8", "int32", "int64", "bool")),
}
"""The builder and the dtypes of each operator."""
