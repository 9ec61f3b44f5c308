# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, conversions, reductions."""

import numpy as np
from graphs.drawing import (
    RANGES,
    activation,
    constant,
    image,
    quantised,
    reach_of,
    reconstant,
    requantised,
    require,
    result_of,
)


def swapped(draw, one, other):
    return [other, one] if draw.chance(0.25) else [one, other]


def binary(draw):
    one = draw.pick()
    kinds = ["ADD", "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"]
    kind = draw.choice(kinds)
    return pair(draw, kind, one)


def pair(draw, kind, one, other=None):
    """Append a function of two operands; the second one has the shape of the first or is broadcast."""
    if other is None:
        same = [two for two in draw.tensors if two.dtype == one.dtype and two.shape == one.shape]
        if draw.chance(0.65) and len(same) > 1:
            other = draw.choice(same if draw.chance(0.15) else [two for two in same if two is not one])
        else:
            shape = draw.choice([one.shape, one.shape[-1:], (1,) * len(one.shape), ()])
            if not shape and one.dtype == "int16":
                shape = (1,)
            other = constant(draw, one.dtype, shape)
    if kind in ("MAXIMUM", "MINIMUM"):
        if quantised(one) and (other.scale, other.zero) != (one.scale, one.zero):
            other = requantised(draw, other, one) if other.content is None else reconstant(draw, other, one)
        return draw.like(kind, swapped(draw, one, other), one.shape)
    reach = reach_of(one) * reach_of(other) / 2 if kind == "MUL" else reach_of(one) + reach_of(other)
    options = activation(draw)
    inputs = swapped(draw, one, other) if kind != "SUB" or other.shape == one.shape else [one, other]
    if kind in ("ADD", "SUB") and one.dtype == "int16":
        options["pot_scale_int16"] = False
    return draw.add(kind, inputs, one.shape, one.dtype, *result_of(draw, one.dtype, reach), **options)


CONVERSIONS = {"int8": ("int8", "uint8", "int16"), "uint8": ("int8", "uint8"), "int16": ("int16", "int8")}
"""The dtypes that LiteRT's QUANTIZE converts integers to."""


def requantise(draw):
    data = draw.pick(quantised)
    target = draw.choice(CONVERSIONS[data.dtype]) if draw.mode == "mixed" else data.dtype
    if draw.chance(0.1) and target == data.dtype:
        return draw.add("QUANTIZE", [data], data.shape, target, data.scale, data.zero)
    low, high = RANGES[data.dtype]
    scale, zero = result_of(draw, target, data.scale * (high - low))
    return draw.add("QUANTIZE", [data], data.shape, target, scale, zero)


UNARY = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH", "ABS", "RELU_N1_TO_1")


_WITHOUT = {"int16": ("HARD_SWISH", "RELU_N1_TO_1"), "uint8": ("ABS",), "int8": (), "float32": ()}


def unary(draw):
    data = draw.pick()
    kind = draw.choice([one for one in UNARY if one not in _WITHOUT[data.dtype]])
    options = {"alpha": float(np.float32(draw.choice([0.1, 0.25, -0.5])))} if kind == "LEAKY_RELU" else {}
    if not quantised(data):
        return draw.add(kind, [data], data.shape, data.dtype, **options)
    fixed = {
        "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
        "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
    }
    if kind in fixed:
        require(data.dtype != "int16" or data.scale <= 4)
        return draw.add(kind, [data], data.shape, data.dtype, *fixed[kind][data.dtype], **options)
    if kind in ("RELU", "RELU6", "RELU_N1_TO_1") and draw.chance(0.5):
        return draw.like(kind, [data], data.shape, **options)
    scale, zero = result_of(draw, data.dtype, reach_of(data))
    return draw.add(kind, [data], data.shape, data.dtype, scale, zero, **options)


def softmax(draw):
    data = draw.pick(lambda one: 1 <= len(one.shape) <= 4 and (one.scale is None or one.scale < 2))
    fixed = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0), "float32": (None, 0)}
    return draw.add("SOFTMAX", [data], data.shape, data.dtype, *fixed[data.dtype], beta=1.0)


def prelu(draw):
    data = draw.pick(lambda one: image(one) and one.dtype != "int16")
    slope = constant(draw, data.dtype, (1, 1, data.shape[3]))
    return draw.add("PRELU", [data, slope], data.shape, data.dtype, *result_of(draw, data.dtype, reach_of(data)))


def shared_activation(draw):
    """Append a conversion of a tensor to float32, operators there, and the conversion back."""
    data = draw.pick(quantised)
    require(draw.mode == "mixed")
    real = draw.add("DEQUANTIZE", [data], data.shape, "float32")
    real = draw.add("RELU", [real], real.shape, "float32") if draw.chance(0.5) else real
    target = draw.choice(["int8", "uint8", "int16"])
    return draw.add("QUANTIZE", [real], real.shape, target, *result_of(draw, target, reach_of(data)))


def reduction(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    kind = draw.choice(["MEAN", "MEAN", "REDUCE_MAX", "REDUCE_MIN"])
    rank = len(data.shape)
    axes = [1, 2] if rank == 4 and draw.chance(0.6) else sorted({draw.number(0, rank - 1) for _ in range(2)})
    keep = draw.chance(0.6)
    shape = [1 if at in axes else n for at, n in enumerate(data.shape) if keep or at not in axes]
    require(shape)
    inputs = [data, draw.shape_constant(axes)]
    if kind == "MEAN" and quantised(data) and draw.chance(0.6):
        scale, zero = result_of(draw, data.dtype, reach_of(data))
        return draw.add(kind, inputs, shape, data.dtype, scale, zero, keep_dims=keep)
    return draw.like(kind, inputs, shape, keep_dims=keep)
