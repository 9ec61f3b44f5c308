# SPDX-License-Identifier: Apache-2.0
"""Random convolutions and fully connected layers."""

import numpy as np
from models.made import Model

ACTIVATIONS = ["NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1"]
RANGES = {"int8": (-128, 128), "uint8": (0, 256), "int16": (0, 1)}


def quantised(random, dtype):
    """Return a random scale and zero point."""
    if dtype == "float32":
        return None, 0
    zero = 0 if dtype == "int16" else int(random.integers(*RANGES[dtype]))
    if random.random() < 0.3:  # scales whose products are halves show the precision of multipliers
        return float(random.choice([0.05, 0.1, 0.02, 0.004])), zero
    return float(random.uniform(0.001, 0.01) if dtype == "int16" else random.uniform(0.01, 0.1)), zero


def operands(model, random, dtype, shape, results, fan_in, axis, has_bias=True):
    """Return weights and bias, and the scale and zero point of the result."""
    if dtype == "float32":
        weights = model.constant(random.standard_normal(shape).astype(np.float32))
        bias = model.constant(random.standard_normal(results).astype(np.float32)) if has_bias else None
        return weights, bias, None, 0
    data = model.graph.inputs[0]
    per_channel = dtype != "uint8" and random.random() < 0.7
    scales = random.uniform(0.001, 0.02, results if per_channel else 1) * random.choice([1, 1, 30])
    if random.random() < 0.3:
        scales[:] = random.choice([0.01, 0.003, 0.02])
    greatest = float(np.max(scales))
    if per_channel and random.random() < 0.3:
        scales[0] *= 2.0 ** -random.integers(10, 34)  # a dead channel
    kind, low = ("uint8", 0) if dtype == "uint8" else ("int8", -127)
    zero = int(random.integers(0, 256)) if dtype == "uint8" else 0
    weights = model.constant(random.integers(low, low + 255, shape).astype(kind), scales, zero, axis)
    bias_type = np.int64 if dtype == "int16" else np.int32
    bias = (
        model.constant(random.integers(-900, 900, results).astype(bias_type), data.scale * scales, 0)
        if has_bias
        else None
    )
    _, target = quantised(random, dtype)
    spread = 70 * 18000 / 20000 if dtype == "int16" else 70 * 70 / 60
    scale = data.scale * greatest * spread * np.sqrt(fan_in) * random.uniform(0.7, 4)
    if random.random() < 0.3:
        scale = float(np.round(scale, 1 - int(np.floor(np.log10(scale)))))
    elif random.random() < 0.3:  # a power of two as multiplier: many sums are halves, rounded by its last bits
        exact = float(np.float32(data.scale) * np.float32(scales[-1]))
        scale = exact * 2.0 ** np.round(np.log2(scale / exact))
    return weights, bias, scale, target


def present(*inputs):
    """LiteRT does not accept an absent bias of a convolution as -1."""
    return [one for one in inputs if one is not None]


def windows(random):
    return {
        "padding": str(random.choice(["SAME", "VALID"])),
        "stride_h": int(random.integers(1, 4)),
        "stride_w": int(random.integers(1, 4)),
        "fused_activation_function": str(random.choice(ACTIVATIONS)),
    }


def dilation(random, options):
    if random.random() < 0.4:
        options.update(stride_h=1, stride_w=1)
        options.update(dilation_h_factor=int(random.integers(1, 4)), dilation_w_factor=int(random.integers(1, 4)))
    return options


def convolution(random, dtype):
    model = Model()
    groups = int(random.choice([1, 1, 1, 2])) if dtype in ("int8", "float32") else 1
    inner, results = int(random.integers(1, 9)), int(random.integers(1, 6)) * groups
    kh, kw = (1, 1) if random.random() < 0.3 else (int(random.integers(1, 4)), int(random.integers(1, 5)))
    batch = int(random.choice([1, 1, 2]))
    data = model.input(
        dtype,
        (batch, int(random.integers(7, 11)), int(random.integers(10, 13)), inner * groups),
        *quantised(random, dtype),
    )
    fan = kh * kw * inner
    weights, bias, scale, zero = operands(model, random, dtype, (results, kh, kw, inner), results, fan, 0)
    options = dilation(random, windows(random))
    model.output(model.operator("CONV_2D", present(data, weights, bias), (dtype, scale, zero), **options))
    return model


def depthwise(random, dtype):
    model = Model()
    channels, multiplier = int(random.integers(1, 9)), int(random.choice([1, 1, 2, 3]))
    kh, kw = int(random.integers(1, 4)), int(random.integers(1, 5))
    if random.random() < 0.2:
        kh, kw = 6, 7
    batch = int(random.choice([1, 1, 2]))
    data = model.input(
        dtype, (batch, int(random.integers(7, 20)), int(random.integers(10, 23)), channels), *quantised(random, dtype)
    )
    results = channels * multiplier
    weights, bias, scale, zero = operands(
        model, random, dtype, (1, kh, kw, results), results, kh * kw, 3, random.random() < 0.8
    )
    options = {**windows(random), "depth_multiplier": multiplier}
    options["stride_h"] = options["stride_w"]
    dilation(random, options)
    if max(kh, kw) > 5:
        options.update(dilation_h_factor=1, dilation_w_factor=1)
    if options.get("dilation_h_factor", 1) != options.get("dilation_w_factor", 1):
        options["dilation_w_factor"] = options["dilation_h_factor"]
    model.output(model.operator("DEPTHWISE_CONV_2D", present(data, weights, bias), (dtype, scale, zero), **options))
    return model


def dense(random, dtype):
    model = Model()
    length, results = int(random.integers(1, 40)), int(random.integers(1, 20))
    shape = [(int(random.integers(1, 4)), length), (1, 2, 3, length), (1, 1, 1, length)][int(random.integers(0, 3))]
    data = model.input(dtype, shape, *quantised(random, dtype))
    weights, bias, scale, zero = operands(
        model, random, dtype, (results, length), results, length, 0, random.random() < 0.8
    )
    options = {
        "fused_activation_function": str(random.choice(ACTIVATIONS)),
        "keep_num_dims": bool(random.integers(0, 2)),
    }
    model.output(model.operator("FULLY_CONNECTED", [data, weights, bias], (dtype, scale, zero), **options))
    return model


KINDS = {"CONV_2D": convolution, "DEPTHWISE_CONV_2D": depthwise, "FULLY_CONNECTED": dense}
