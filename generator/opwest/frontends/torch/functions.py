# SPDX-License-Identifier: Apache-2.0
"""Functions of one element: activations, arithmetic, conversions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import FLOATS, Builder, Context, Value, translates
from opwest.frontends.torch.elements import clamped

_SIMPLE: Mapping[str, str] = {
    **{name: name.capitalize() for name in ("abs", "neg", "exp", "log", "sqrt", "sin", "cos", "tan", "floor", "ceil")},
    **{name: name.capitalize() for name in ("round", "erf", "sign", "asin", "acos", "atan", "sinh", "cosh", "asinh")},
    **{name: name.capitalize() for name in ("acosh", "atanh", "sigmoid", "tanh", "relu", "mish", "reciprocal")},
    "negative": "Neg",
    "absolute": "Abs",
    "hardswish": "HardSwish",
    "softsign": "Softsign",
    "sgn": "Sign",
}
_OF_INTEGERS = frozenset(("abs", "neg", "sign", "sgn", "relu", "floor", "ceil", "round", "negative", "absolute"))


@translates(*_SIMPLE)
def simple(x: Context, b: Builder) -> Value:
    """One operator of ONNX; functions of integers with float results convert them."""
    name = x.call.operator.removeprefix("aten.")
    data = x.tensor("self")
    if name == "round" and x.integer("decimals", 0):
        raise Unsupported("round to decimals", "decimals=0")
    if name not in _OF_INTEGERS:
        data = b.cast(data, x.meta.dtype)
    elif name in ("floor", "ceil", "round") and data.dtype not in FLOATS:
        return data
    return b.unary(_SIMPLE[name], data)


@translates("relu6")
def relu6(x: Context, b: Builder) -> Value:
    """A clamp."""
    return clamped(b, x.tensor("self"), 0, 6)


@translates("square")
def square(x: Context, b: Builder) -> Value:
    """The product with itself."""
    return b.binary("Mul", x.tensor("self"), x.tensor("self"))


@translates("rsqrt")
def rsqrt(x: Context, b: Builder) -> Value:
    """A power of -1/2."""
    return b.binary("Pow", b.cast(x.tensor("self"), x.meta.dtype), -0.5)


@translates("log1p", "log2", "log10", "expm1", "exp2")
def logarithms(x: Context, b: Builder) -> Value:
    """By the natural logarithm and its inverse."""
    data = b.cast(x.tensor("self"), x.meta.dtype)
    name = x.call.operator.removeprefix("aten.")
    if name == "log1p":
        return b.unary("Log", b.binary("Add", data, 1.0))
    if name == "expm1":
        return b.binary("Sub", b.unary("Exp", data), 1.0)
    if name == "exp2":
        return b.unary("Exp", b.binary("Mul", data, math.log(2)))
    return b.binary("Mul", b.unary("Log", data), 1 / math.log(2 if name == "log2" else 10))


@translates("trunc", "fix", "frac")
def truncated(x: Context, b: Builder) -> Value:
    """Rounded towards 0, or what that leaves."""
    data = x.tensor("self")
    if data.dtype not in FLOATS:
        return data
    whole = b.binary("Mul", b.unary("Sign", data), b.unary("Floor", b.unary("Abs", data)))
    return b.binary("Sub", data, whole) if x.call.operator == "aten.frac" else whole


@translates("isnan", "isinf")
def special(x: Context, b: Builder) -> Value:
    """NaN or infinity."""
    kind = "IsNaN" if x.call.operator == "aten.isnan" else "IsInf"
    data = x.tensor("self")
    return b.op(kind, [data], data.shape, "bool")


@translates("hardsigmoid")
def hard_sigmoid(x: Context, b: Builder) -> Value:
    """A line between 0 and 1."""
    return b.unary("HardSigmoid", x.tensor("self"), alpha=1 / 6, beta=0.5)


@translates("erfc")
def complement(x: Context, b: Builder) -> Value:
    """1 - erf(x)."""
    return b.binary("Sub", 1.0, b.unary("Erf", x.tensor("self")))


@translates("logit")
def logit(x: Context, b: Builder) -> Value:
    """log(x / (1 - x)), of x within limits if there are any."""
    data = x.tensor("self")
    if x.has("eps"):
        limit = float(x.number("eps"))
        data = clamped(b, data, limit, 1 - limit)
    return b.unary("Log", b.binary("Div", data, b.binary("Sub", 1.0, data)))


@translates("nan_to_num")
def without_nan(x: Context, b: Builder) -> Value:
    """Numbers instead of NaN and infinity."""
    data = x.tensor("self")
    most = float(np.finfo(np.float32).max)
    special = b.op("IsNaN", [data], data.shape, "bool")
    known = b.op("Where", [special, b.operand(x.number("nan", 0.0), data.dtype), data], data.shape, data.dtype)
    for name, wanted, default in (("posinf", np.inf, most), ("neginf", -np.inf, -most)):
        infinite = b.binary("Equal", known, wanted)
        value = b.operand(x.number(name, default), data.dtype)
        known = b.op("Where", [infinite, value, known], data.shape, data.dtype)
    return known


@translates("silu", "swish")
def silu(x: Context, b: Builder) -> Value:
    """X * sigmoid(x)."""
    data = x.tensor("self")
    return b.binary("Mul", data, b.unary("Sigmoid", data))


@translates("log_sigmoid")
def log_sigmoid(x: Context, b: Builder) -> Value:
    """-softplus(-x)."""
    return b.unary("Neg", b.unary("Softplus", b.unary("Neg", x.tensor("self"))))


@translates("gelu")
def gelu(x: Context, b: Builder) -> Value:
    """By erf or tanh."""
    return b.unary("Gelu", x.tensor("self"), approximate=x.text("approximate", "none"))


@translates("leaky_relu")
def leaky(x: Context, b: Builder) -> Value:
    """A factor for negative elements."""
    return b.unary("LeakyRelu", x.tensor("self"), alpha=float(x.number("negative_slope", 0.01)))


@translates("prelu", "_prelu_kernel")
def prelu(x: Context, b: Builder) -> Value:
    """A factor for the negative elements of each channel."""
    data, slope = x.tensor("self"), x.tensor("weight")
    if x.call.operator == "aten.prelu" and data.rank > 1 and slope.size > 1:
        slope = b.reshape(slope, (slope.size, *[1] * (data.rank - 2)))
    elif slope.size == 1:
        slope = b.reshape(slope, (1,))
    return b.op("PRelu", [data, slope], data.shape)


@translates("elu", "celu", "selu")
def elu(x: Context, b: Builder) -> Value:
    """Exponential functions of negative elements."""
    data = x.tensor("self")
    name = x.call.operator.removeprefix("aten.")
    if name == "selu":
        return b.unary("Selu", data)
    alpha = float(x.number("alpha", 1.0))
    if name == "celu":
        return b.unary("Celu", data, alpha=alpha)
    scale, inner = float(x.number("scale", 1.0)), float(x.number("input_scale", 1.0))
    if (scale, inner) == (1.0, 1.0):
        return b.unary("Elu", data, alpha=alpha)
    below = b.binary("Mul", clamped(b, data, None, 0.0), inner)
    bent = b.binary("Mul", b.unary("Elu", below, alpha=1.0), alpha * scale)
    return b.binary("Add", b.binary("Mul", b.unary("Relu", data), scale), bent)


@translates("softplus")
def softplus(x: Context, b: Builder) -> Value:
    """log(1 + exp(beta * x)) / beta; above the threshold x."""
    data = x.tensor("self")
    beta, threshold = float(x.number("beta", 1)), float(x.number("threshold", 20))
    inner = data if beta == 1 else b.binary("Mul", data, beta)
    soft = b.unary("Softplus", inner)
    soft = soft if beta == 1 else b.binary("Div", soft, beta)
    if threshold >= 16:  # log(1 + exp(16)) is 16 as float32
        return soft
    above = b.binary("Greater", inner, threshold)
    return b.op("Where", [above, data, soft], data.shape, data.dtype)


@translates("threshold")
def threshold(x: Context, b: Builder) -> Value:
    """X above a threshold, else a value."""
    data = x.tensor("self")
    above = b.binary("Greater", data, x.number("threshold"))
    return b.op("Where", [above, data, b.operand(x.number("value"), data.dtype)], data.shape, data.dtype)


@translates("hardshrink", "softshrink", "tanhshrink")
def shrink(x: Context, b: Builder) -> Value:
    """Zeros near 0; softshrink moves the others towards 0."""
    data = x.tensor("self")
    if x.call.operator == "aten.tanhshrink":
        return b.binary("Sub", data, b.unary("Tanh", data))
    limit = float(x.number("lambd", 0.5))
    if x.call.operator == "aten.softshrink":
        return b.binary("Sub", data, clamped(b, data, -limit, limit))
    inside = b.binary("LessOrEqual", b.unary("Abs", data), limit)
    return b.op("Where", [inside, b.operand(0.0, data.dtype), data], data.shape, data.dtype)


@translates("glu")
def glu(x: Context, b: Builder) -> Value:
    """One half times the sigmoid of the other."""
    data = x.tensor("self")
    axis = x.integer("dim", -1) % data.rank
    half = data.shape[axis] // 2
    first, second = b.slice(data, axis, 0, half), b.slice(data, axis, half, 2 * half)
    return b.binary("Mul", first, b.unary("Sigmoid", second))


@translates("to", "_to_copy", "type_as", "prims.convert_element_type", "clone", "contiguous", "alias", "detach")
def convert(x: Context, b: Builder) -> Value:
    """Another dtype; devices and layouts of memory have no effect."""
    return b.cast(x.tensor("self", "a"), x.meta.dtype)


@translates("lift_fresh_copy", "lift_fresh", "dropout", "native_dropout", "alpha_dropout", "feature_dropout", "copy")
def same(x: Context, b: Builder) -> Value | list[Value | None]:
    """The data; dropout has no effect in inference."""
    if x.flag("train"):
        raise Unsupported("dropout of a training", "a program for inference", "export model.eval()")
    if x.call.operator == "aten.copy":
        return b.expand(b.cast(x.tensor("src"), x.meta.dtype), x.meta.shape)
    data = x.tensor("self", "input")
    return [data, None] if x.call.operator == "aten.native_dropout" else data


@translates("fill", "zero")
def fill(x: Context, b: Builder) -> Value:
    """A number in each element."""
    data = x.tensor("self")
    value = b.operand(0 if x.call.operator == "aten.zero" else x.operand("value"), data.dtype)
    return b.expand(value, data.shape)
