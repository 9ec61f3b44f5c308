# SPDX-License-Identifier: Apache-2.0
"""New tensors: constants of a program."""

from __future__ import annotations

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Value, translates

_MAX_NEW = 1 << 24
"""The most elements of a new constant."""


def _new(b: Builder, shape: tuple[int, ...], value: float, dtype: str) -> Value:
    if int(np.prod(shape, dtype=np.int64)) > _MAX_NEW:
        raise Unsupported(f"a constant of the shape {list(shape)}", f"at most {counted(_MAX_NEW, 'element')}")
    return b.constant(np.full(shape, value, dtype))


@translates("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "empty", "empty_like", "new_empty")
def filled(x: Context, b: Builder) -> Value:
    """Zeros or ones; memory without a content is zeros."""
    return _new(b, x.meta.shape, float("ones" in x.call.operator), x.meta.dtype)


@translates("full", "full_like", "new_full", "scalar_tensor")
def full(x: Context, b: Builder) -> Value:
    """One number."""
    name = "s" if x.call.operator == "aten.scalar_tensor" else "fill_value"
    return _new(b, x.meta.shape, x.number(name), x.meta.dtype)


@translates("arange", "linspace")
def ramp(x: Context, b: Builder) -> Value:
    """Numbers with a step."""
    meta = x.meta
    count = int(np.prod(meta.shape, dtype=np.int64))
    if count > _MAX_NEW:
        raise Unsupported(f"a constant of {counted(count, 'element')}", f"at most {_MAX_NEW}")
    start = x.number("start", 0)
    if x.call.operator == "aten.linspace":
        return b.constant(np.linspace(start, x.number("end"), count).astype(meta.dtype))
    step = x.number("step", 1)
    return b.constant((start + step * np.arange(count)).astype(meta.dtype))


@translates("meshgrid")
def meshgrid(x: Context, b: Builder) -> list[Value | None]:
    """The coordinates of a grid: vectors along its dimensions."""
    vectors = x.tensors("tensors")
    shape = [vector.size for vector in vectors]
    order = list(range(len(vectors)))
    if x.text("indexing", "ij") == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    grids: list[Value | None] = []
    for place, vector in enumerate(vectors):
        wide = b.reshape(vector, [n if axis == place else 1 for axis, n in enumerate(shape)])
        grids.append(b.transpose(b.expand(wide, shape), order))
    return grids


@translates("hann_window", "hamming_window", "bartlett_window", "blackman_window")
def window(x: Context, b: Builder) -> Value:
    """A window of a spectrum, periodic by default."""
    [count] = x.meta.shape
    name = x.call.operator.removeprefix("aten.").removesuffix("_window")
    length = count + 1 if x.flag("periodic", True) else count
    if name == "hamming" and x.has("alpha"):
        alpha, beta = float(x.number("alpha")), float(x.number("beta", 0.46))
        return b.constant(
            (alpha - beta * np.cos(2 * np.pi * np.arange(count) / max(length - 1, 1))).astype(x.meta.dtype)
        )
    made = {"hann": np.hanning, "hamming": np.hamming, "bartlett": np.bartlett, "blackman": np.blackman}[name](length)
    return b.constant(made[:count].astype(x.meta.dtype))


@translates("eye")
def eye(x: Context, b: Builder) -> Value:
    """Ones on the diagonal."""
    if int(np.prod(x.meta.shape, dtype=np.int64)) > _MAX_NEW:
        raise Unsupported(f"a constant of the shape {list(x.meta.shape)}")
    return b.constant(np.eye(x.meta.shape[0], x.meta.shape[-1]).astype(x.meta.dtype))


@translates("tril", "triu")
def triangle(x: Context, b: Builder) -> Value:
    """Zeros on one side of a diagonal."""
    data, upper = x.tensor("self"), x.call.operator == "aten.triu"
    diagonal = x.integer("diagonal", 0)
    if data.content is not None:
        return b.constant((np.triu if upper else np.tril)(data.content, diagonal))
    if data.dtype == "bool":
        mask = (np.triu if upper else np.tril)(np.ones(data.shape[-2:], bool), diagonal)
        return b.binary("And", data, b.constant(mask))
    return b.op("Trilu", [data, b.constant(np.asarray(diagonal, np.int64))], data.shape, upper=int(upper))
