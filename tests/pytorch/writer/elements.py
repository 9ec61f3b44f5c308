# SPDX-License-Identifier: Apache-2.0
"""Operators of elements: functions, arithmetic, comparisons. Runs in the environment of PyTorch."""

import torch
from draws import coin, integers, normal, operator, pair_of, pick, positive, shape_of, weights
from torch.nn import functional

PLAIN = {
    # Name of torch: the operator whose bound it has.
    "relu": "Relu", "relu6": "Relu", "selu": "Selu", "silu": "Swish", "mish": "Mish", "hardswish": "HardSwish",
    "hardsigmoid": "HardSigmoid", "sigmoid": "Sigmoid", "tanh": "Tanh", "softsign": "Softsign",
    "logsigmoid": "Softplus", "exp": "Exp", "abs": "Abs", "neg": "Neg", "sign": "Sign", "floor": "Floor",
    "ceil": "Ceil", "round": "Round", "sin": "Sin", "cos": "Cos", "erf": "Erf", "square": "Mul", "tan": "Tan",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "reciprocal": "Reciprocal", "trunc": "Floor",
    "expm1": "Exp",
}  # fmt: skip
POSITIVE = {"log": "Exp", "sqrt": "Div", "rsqrt": "Div", "log1p": "Exp", "log2": "Exp", "acosh": "Acosh"}
WITHIN_ONE = {"asin": "Asin", "acos": "Acos", "atanh": "Atanh"}
RENAMED = {"softsign": "div", "logsigmoid": "log_sigmoid", "square": "square"}
QUANTISED = ("relu", "relu6", "hardswish", "hardsigmoid", "sigmoid", "tanh", "silu")


def _unary(name, bound, draw):
    function = getattr(functional, name, None) or getattr(torch, name)

    @operator(name, bound, name in QUANTISED, RENAMED.get(name, ""))
    def make(random):
        return function, [draw(random)]


for _name, _bound in PLAIN.items():
    _unary(_name, _bound, lambda random: normal(*shape_of(random)))
for _name, _bound in POSITIVE.items():
    _least = 1.1 if _name == "acosh" else 0.05
    _unary(_name, _bound, lambda random, least=_least: positive(*shape_of(random), least=least))
for _name, _bound in WITHIN_ONE.items():
    _unary(_name, _bound, lambda random: positive(*shape_of(random), least=-0.98, greatest=0.98))


@operator("hardtanh", "Relu", True)
def hardtanh(random):
    low, high = pick(random, (-1.0, 1.0), (0.0, 6.0), (-0.7, 2.5), (0.0, 1.0))
    return (lambda x: functional.hardtanh(x, low, high)), [normal(*shape_of(random))]


@operator("leaky_relu", "LeakyRelu")
def leaky_relu(random):
    slope = float(random.choice([0.01, 0.2, 1.5]))
    return (lambda x: functional.leaky_relu(x, slope)), [normal(*shape_of(random))]


@operator("elu", "Elu")
def elu(random):
    alpha = float(random.choice([1.0, 0.7]))
    return (lambda x: functional.elu(x, alpha)), [normal(*shape_of(random))]


@operator("celu", "Celu")
def celu(random):
    alpha = float(random.choice([1.0, 1.5]))
    return (lambda x: functional.celu(x, alpha)), [normal(*shape_of(random))]


@operator("gelu", "Gelu")
def gelu(random):
    approximate = pick(random, "none", "tanh")
    return (lambda x: functional.gelu(x, approximate=approximate)), [normal(*shape_of(random))]


@operator("softplus", "Softplus")
def softplus(random):
    beta, threshold = float(random.choice([1.0, 0.5])), float(random.choice([20.0, 2.0]))
    return (lambda x: functional.softplus(x, beta, threshold)), [normal(*shape_of(random))]


@operator("prelu", "PRelu", overload="prelu")
def prelu(random):
    shape = shape_of(random, 2)
    slopes = weights(random, shape[1] if coin(random) else 1)
    return (lambda x: functional.prelu(x, slopes)), [normal(*shape)]


@operator("clamp", "Relu")
def clamp(random):
    low, high = pick(random, (-0.5, 0.5), (None, 0.3), (-0.2, None), (0.0, 6.0))
    return (lambda x: torch.clamp(x, low, high)), [normal(*shape_of(random))]


@operator("threshold", "ThresholdedRelu")
def threshold(random):
    return (lambda x: functional.threshold(x, 0.3, 0.0)), [normal(*shape_of(random))]


@operator("pow", "Pow")
def power(random):
    if coin(random, 0.3):
        one, two = pair_of(random)
        return torch.pow, [positive(*one), normal(*two, scale=1)]
    exponent = pick(random, 2, 3, 0.5, -1, 1.5)
    draw = normal if exponent in (2, 3) else positive
    return (lambda x: torch.pow(x, exponent)), [draw(*shape_of(random))]


def _arithmetic(name, bound, function, quantised=False):
    @operator(name, bound, quantised)
    def make(random):
        one, two = pair_of(random)
        other = pick(random, "input", "input", "constant", "number")
        if quantised and other == "number":
            other = "input"
        if other == "input":
            return function, [normal(*one), positive(*two) if name in ("div", "fmod", "remainder") else normal(*two)]
        if other == "constant":
            values = weights(random, *two).abs() + 0.5
            return (lambda x: function(x, values)), [normal(*one)]
        number = pick(random, 2, 0.75, -1.5)
        return (lambda x: function(x, number)), [normal(*one)]


_arithmetic("add", "Add", torch.add, True)
_arithmetic("sub", "Sub", torch.sub)
_arithmetic("mul", "Mul", torch.mul, True)
_arithmetic("div", "Div", torch.div)


@operator("add_alpha", "Add", overload="add")
def add_alpha(random):
    one, two = pair_of(random)
    alpha = pick(random, 2, -0.5, 3)
    return (lambda x, y: torch.add(x, y, alpha=alpha)), [normal(*one), normal(*two)]


@operator("rsub", "Sub")
def rsub(random):
    number = pick(random, 1, 2.5)
    return (lambda x: torch.rsub(x, number)), [normal(*shape_of(random))]


@operator("add_integers", "Equal", overload="add")
def add_integers(random):
    one, two = pair_of(random)
    dtype = pick(random, torch.int32, torch.int64)
    return (lambda x, y: x + y * 2 - 1), [integers(-99, 100, *s, dtype=dtype) for s in (one, two)]


@operator("maximum", "Max")
def maximum(random):
    return torch.maximum, [normal(*one) for one in pair_of(random)]


@operator("minimum", "Min")
def minimum(random):
    return torch.minimum, [normal(*one) for one in pair_of(random)]


def _comparison(name):
    function = getattr(torch, name)

    @operator(name, "Equal")
    def make(random):
        one, two = pair_of(random)
        if coin(random, 0.3):
            return (lambda x: function(x, 1)), [integers(-2, 3, *one)]
        return function, [integers(-2, 3, *shape, dtype=torch.float32) for shape in (one, two)]


for _name in ("gt", "lt", "ge", "le", "eq", "ne"):
    _comparison(_name)


@operator("logical_and", "Equal")
def logical_and(random):
    return (lambda x, y: torch.logical_and(x > 0, y < 0.5)), [normal(*one) for one in pair_of(random)]


@operator("logical_not", "Not")
def logical_not(random):
    return (lambda x: torch.logical_not(x > 0)), [normal(*shape_of(random))]


@operator("where", "Equal")
def where(random):
    one, two = pair_of(random)
    if coin(random, 0.3):
        return (lambda x: torch.where(x > 0, x, torch.tensor(0.25))), [normal(*one)]
    return (lambda x, y: torch.where(x > y, x, y * 1)), [normal(*one), normal(*two)]


@operator("masked_fill", "Equal")
def masked_fill(random):
    shape, value = shape_of(random), pick(random, 0.0, -1.5)
    return (lambda x: x.masked_fill(x > 0.3, value)), [normal(*shape)]


@operator("to", "Equal", overload="_to_copy|to")
def convert(random):
    dtype = pick(random, torch.int32, torch.bool, torch.int64)
    return (lambda x: x.to(dtype)), [normal(*shape_of(random))]


@operator("floor_divide", "Floor", overload="floor_divide|div")
def floor_divide(random):
    one, two = pair_of(random)
    return torch.floor_divide, [integers(-9, 10, *one, dtype=torch.float32), integers(1, 5, *two, dtype=torch.float32)]


@operator("remainder", "Div")
def remainder(random):
    return (lambda x: torch.remainder(x, 0.75)), [normal(*shape_of(random))]
