# SPDX-License-Identifier: Apache-2.0
"""Normalisations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Value, translates

_EVAL = "a program for inference"
_EVAL_HINT = "export model.eval()"


@translates(
    *("batch_norm", "_native_batch_norm_legit_no_training", "native_batch_norm", "cudnn_batch_norm"),
    *("_batch_norm_no_update", "miopen_batch_norm"),
)
def batch_norm(x: Context, b: Builder) -> list[Value | None]:
    """With constant statistics."""
    if x.flag("training") or x.flag("train"):
        raise Unsupported(f"{x.call.operator} of a training", _EVAL, _EVAL_HINT)
    data = x.tensor("input")
    mean, variance = x.tensor("running_mean"), x.tensor("running_var")
    count = mean.size
    weight = x.optional("weight") or b.constant(np.ones(count, np.float32))
    bias = x.optional("bias") or b.constant(np.zeros(count, np.float32))
    inputs = [data, weight, bias, mean, variance]
    result = b.op("BatchNormalization", inputs, data.shape, epsilon=float(x.number("eps", 1e-5)))
    return [result, *[None] * (len(x.call.results) - 1)]


@translates("layer_norm", "native_layer_norm")
def layer_norm(x: Context, b: Builder) -> list[Value | None]:
    """Over the last dimensions."""
    data = x.tensor("input")
    shape = x.integers("normalized_shape")
    if not shape or tuple(shape) != data.shape[-len(shape) :]:
        raise Unsupported(f"normalized_shape {shape} of {list(data.shape)}")
    weight = x.optional("weight") or b.constant(np.ones(shape, np.float32))
    inputs = [data, weight, x.optional("bias")]
    options: dict[str, Any] = {"axis": data.rank - len(shape), "epsilon": float(x.number("eps", 1e-5))}
    result = b.op("LayerNormalization", inputs, data.shape, **options)
    return [result, *[None] * (len(x.call.results) - 1)]


@translates("rms_norm", "_fused_rms_norm")
def rms_norm(x: Context, b: Builder) -> list[Value | None]:
    """Data divided by the root of the mean of its squares."""
    data = x.tensor("input")
    count = len(x.integers("normalized_shape"))
    axes = list(range(data.rank - count, data.rank))
    kept = [1 if axis in axes else n for axis, n in enumerate(data.shape)]
    mean = b.op("ReduceMean", [b.binary("Mul", data, data), b.ints(axes)], kept, keepdims=1)
    root = b.unary("Sqrt", b.binary("Add", mean, float(x.number("eps", float(np.finfo(np.float32).eps)))))
    result = b.binary("Div", data, root)
    weight = x.optional("weight")
    result = result if weight is None else b.binary("Mul", result, weight)
    return [result, *[None] * (len(x.call.results) - 1)]


@translates("group_norm", "native_group_norm")
def group_norm(x: Context, b: Builder) -> list[Value | None]:
    """Over groups of channels."""
    data = x.tensor("input")
    groups = x.integer("num_groups" if x.call.operator == "aten.group_norm" else "group")
    channels = data.shape[1]
    if groups < 1 or channels % groups:
        raise Unsupported(f"{channels} channels in {groups} groups")
    weight = x.optional("weight") or b.constant(np.ones(channels, np.float32))
    bias = x.optional("bias") or b.constant(np.zeros(channels, np.float32))
    options: dict[str, Any] = {"num_groups": groups, "epsilon": float(x.number("eps", 1e-5))}
    result = b.op("GroupNormalization", [data, weight, bias], data.shape, **options)
    return [result, *[None] * (len(x.call.results) - 1)]


@translates("instance_norm")
def instance_norm(x: Context, b: Builder) -> Value:
    """Over the image of each channel; with running statistics as batch_norm."""
    data = x.tensor("input")
    channels = data.shape[1]
    weight = x.optional("weight") or b.constant(np.ones(channels, np.float32))
    bias = x.optional("bias") or b.constant(np.zeros(channels, np.float32))
    epsilon = float(x.number("eps", 1e-5))
    if not x.flag("use_input_stats", True):
        inputs = [data, weight, bias, x.tensor("running_mean"), x.tensor("running_var")]
        return b.op("BatchNormalization", inputs, data.shape, epsilon=epsilon)
    return b.op("InstanceNormalization", [data, weight, bias], data.shape, epsilon=epsilon)


@translates("_native_batch_norm_legit")
def legit(x: Context, b: Builder) -> list[Value | None]:
    """What instance_norm is decomposed to: statistics of one batch."""
    data = x.tensor("input")
    if x.has("running_mean") or not x.flag("training", True) or data.shape[0] != 1:
        raise Unsupported(f"{x.call.operator} of a training", _EVAL, _EVAL_HINT)
    channels = data.shape[1]
    weight = x.optional("weight") or b.constant(np.ones(channels, np.float32))
    bias = x.optional("bias") or b.constant(np.zeros(channels, np.float32))
    options: dict[str, Any] = {"epsilon": float(x.number("eps", 1e-5))}
    result = b.op("InstanceNormalization", [data, weight, bias], data.shape, **options)
    return [result, *[None] * (len(x.call.results) - 1)]


@translates("softmax", "_softmax", "log_softmax", "_log_softmax", "softmin")
def softmax(x: Context, b: Builder) -> Value:
    """Exponential functions divided by their sum, or the logarithm of that."""
    data = b.cast(x.tensor("self"), x.meta.dtype)
    kind = "LogSoftmax" if "log" in x.call.operator else "Softmax"
    if data.rank == 0:
        return b.reshape(b.op(kind, [b.reshape(data, (1,))], (1,), axis=0), ())
    data = b.unary("Neg", data) if x.call.operator == "aten.softmin" else data
    return b.op(kind, [data], data.shape, axis=x.integer("dim"))


@translates("linalg_vector_norm", "norm", "frobenius_norm")
def norm(x: Context, b: Builder) -> Value:
    """The sum of magnitudes, or the root of the sum of squares."""
    data = x.tensor("self")
    order = x.get("ord", x.get("p", 2))
    axes = [axis % max(data.rank, 1) for axis in x.integers("dim", list(range(data.rank))) or range(data.rank)]
    kinds = {1: "ReduceL1", 2: "ReduceL2"}
    if order in kinds:
        return b.op(kinds[order], [data, b.ints(axes)], x.meta.shape, keepdims=int(x.flag("keepdim")))
    if order in (float("inf"), float("-inf")):
        kind = "ReduceMax" if order > 0 else "ReduceMin"
        return b.op(kind, [b.unary("Abs", data), b.ints(axes)], x.meta.shape, keepdims=int(x.flag("keepdim")))
    raise Unsupported(f"the norm {order}", "1, 2 or inf")


@translates("local_response_norm")
def local_response(x: Context, b: Builder) -> Value:
    """Division by the squares of neighbouring channels."""
    data = x.tensor("input")
    options: dict[str, Any] = {"alpha": float(x.number("alpha", 1e-4)), "beta": float(x.number("beta", 0.75))}
    return b.unary("LRN", data, size=x.integer("size"), bias=float(x.number("k", 1.0)), **options)


@translates("_weight_norm", "_weight_norm_interface")
def weight_norm(x: Context, b: Builder) -> list[Value | None]:
    """Weights of a direction v and a length g: g * v / |v|, where a length belongs to a slice of a dimension."""
    direction, length = x.tensor("v"), x.tensor("g")
    axis = x.integer("dim", 0)
    axes = [other for other in range(direction.rank) if axis == -1 or other != axis % direction.rank]
    kept = [1 if other in axes else n for other, n in enumerate(direction.shape)]
    norms = b.op("ReduceL2", [direction, b.ints(axes)], kept, keepdims=1)
    weights = b.binary("Mul", direction, b.binary("Div", length, norms))
    both: list[Value | None] = [weights, b.reshape(norms, length.shape)]
    return both[: len(x.call.results)]


@translates("normalize")
def normalize(x: Context, b: Builder) -> Value:
    """Data divided by its length."""
    data = x.tensor("input")
    axis = x.integer("dim", 1) % data.rank
    kept = [1 if i == axis else n for i, n in enumerate(data.shape)]
    length = b.op("ReduceL2", [data, b.ints([axis])], kept, keepdims=1)
    return b.binary("Div", data, b.binary("Max", length, float(x.number("eps", 1e-12))))


@translates("var", "std", "var_mean", "std_mean")
def variance(x: Context, b: Builder) -> Value | list[Value | None]:
    """The mean square of distances to the mean, with a correction of the count."""
    data = x.tensor("self")
    axes = [axis % max(data.rank, 1) for axis in x.integers("dim", []) or range(data.rank)]
    correction = x.number("correction", 1) if not x.has("unbiased") else float(x.flag("unbiased", True))
    kept = [1 if axis in axes else n for axis, n in enumerate(data.shape)]
    mean = b.op("ReduceMean", [data, b.ints(axes)], kept, keepdims=1)
    apart = b.binary("Sub", data, mean)
    count = prod(data.shape[axis] for axis in axes)
    sums = b.op("ReduceSum", [b.binary("Mul", apart, apart), b.ints(axes)], kept, keepdims=1)
    made = b.binary("Mul", sums, 1 / max(count - correction, 1e-30))
    made = b.unary("Sqrt", made) if "std" in x.call.operator else made
    shape = x.meta.shape
    if "mean" not in x.call.operator:
        return b.reshape(made, shape)
    return [b.reshape(made, shape), b.reshape(mean, shape)]
