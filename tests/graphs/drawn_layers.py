# SPDX-License-Identifier: Apache-2.0
"""Layers with weights, pools, and the pieces of networks that are made of them."""

from math import prod

import numpy as np
from graphs.drawing import (
    MOST,
    NONE,
    PADDINGS,
    RANGES,
    activation,
    attempt,
    constant,
    image,
    reach_of,
    require,
    result_of,
    sizes,
    window,
)
from graphs.drawn_elements import pair
from graphs.drawn_moves import concatenation


def convolution_numbers(draw, data, results, fan, axis_shape, axis, depthwise=False):
    """Return the weights, the bias and the quantisation of the result of a layer."""
    random, dtype = draw.random, data.dtype
    model = draw.model
    if dtype == "float32":
        weights = (random.standard_normal(axis_shape) / np.sqrt(fan)).astype(np.float32)
        if draw.chance(0.3):
            weights[_channels(weights, axis, random)] = 0
        bias = model.constant(random.standard_normal(results).astype(np.float32))
        return model.constant(weights), bias, "float32", None, 0
    per_channel = dtype != "uint8" and draw.mode != "int8 per tensor" and draw.chance(0.85)
    low, high = (0, 255) if dtype == "uint8" else (-127, 127)
    weights = random.integers(low, high + 1, axis_shape)
    weight_zero = draw.number(0, 255) if dtype == "uint8" else 0
    scales = np.full(results if per_channel else 1, 0.01)
    if per_channel:
        scales = scales * 10 ** random.uniform(-0.6, 0.6, results)
    scales = scales.astype(np.float32)
    spread_of_data = {"int8": 70, "uint8": 70, "int16": 12000}[dtype]
    real = data.scale * spread_of_data * float(scales.mean()) * 70 * np.sqrt(fan)
    bias_limit = max(2, int(spread_of_data * 70 * np.sqrt(fan)))
    bias = random.integers(-bias_limit, bias_limit + 1, results)
    if draw.chance(0.4):
        weights[_channels(weights, axis, random)] = weight_zero  # dead or constant channels
        if draw.chance(0.5):
            bias[random.random(results) < 0.3] = 0
    if draw.chance(0.25):  # saturated channels
        bias[random.random(results) < 0.3] = bias_limit * draw.choice([-30, 30])
    target = dtype
    low, high = RANGES[target]
    scale = float(np.float32(real * 3 / (high - low) * 10 ** random.uniform(-0.4, 0.6)))
    zero = draw.zero(target)
    given = (scales, np.zeros(results, np.int64)) if per_channel else (float(scales[0]), weight_zero)
    one = model.constant(weights.astype("uint8" if dtype == "uint8" else "int8"), *given, axis=axis)
    kind = np.int64 if dtype == "int16" else np.int32
    of_bias = (np.float32(data.scale) * scales).astype(np.float32)
    bias_given = (of_bias, np.zeros(results, np.int64)) if per_channel else (float(of_bias[0]), 0)
    return one, model.constant(bias.astype(kind), *bias_given), target, scale, zero


def _channels(weights, axis, random):
    """Return the index of some channels of an axis."""
    return tuple(random.random(n) < 0.4 if at == axis else slice(None) for at, n in enumerate(weights.shape))


def convolution(draw, data=None, results=None, size=None, plain=False):
    data = data or draw.pick(image)
    channels = data.shape[3]
    results = results or draw.number(1, 12)
    size = size or draw.choice([(1, 1), (1, 1), (3, 3), sizes(draw)])
    stride = (1, 1) if plain or draw.chance(0.7) else sizes(draw, 2)
    dilation = (2, 1) if not plain and size == (3, 3) and stride == (1, 1) and draw.chance(0.1) else (1, 1)
    padding = draw.choice(PADDINGS)
    padding = "SAME" if plain else padding
    groups = 1
    if not plain and channels % 2 == 0 and results % 2 == 0 and data.dtype == "float32" and draw.chance(0.1):
        groups = 2
    rows = window(padding, data, size, stride, dilation)
    require(prod(rows) * results * data.shape[0] <= MOST)
    inner = channels // groups
    shape = (results, *size, inner)
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, prod(size) * inner, shape, 0)
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1], **activation(draw)}
    options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
    shape = (data.shape[0], *rows, results)
    return draw.add("CONV_2D", [data, weights, bias], shape, dtype, scale, zero, **options)


def depthwise(draw, data=None, plain=False):
    data = data or draw.pick(image)
    multiplier = 1 if plain else draw.choice([1, 1, 1, 2])
    size = draw.choice([(3, 3), (3, 3), sizes(draw)])
    stride = (1, 1) if plain or draw.chance(0.7) else (2, 2)
    padding = "SAME" if plain else draw.choice(PADDINGS)
    rows = window(padding, data, size, stride)
    results = data.shape[3] * multiplier
    require(prod(rows) * results * data.shape[0] <= MOST and results <= 40)
    shape = (1, *size, results)
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, prod(size), shape, 3)
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1], **activation(draw)}
    options |= {"depth_multiplier": multiplier, "dilation_h_factor": 1, "dilation_w_factor": 1}
    shape = (data.shape[0], *rows, results)
    return draw.add("DEPTHWISE_CONV_2D", [data, weights, bias], shape, dtype, scale, zero, **options)


def dense(draw):
    data = draw.pick(lambda one: len(one.shape) >= 2)
    keep = draw.chance(0.5)
    length = data.shape[-1] if keep else prod(data.shape[1:])
    require(length <= 700)
    rows = prod(data.shape) // length
    results = draw.number(1, 16)
    require(rows * results <= MOST)
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, length, (results, length), 0)
    shape = (*data.shape[:-1], results) if keep else (rows, results)
    options = {**activation(draw), "keep_num_dims": keep}
    return draw.add("FULLY_CONNECTED", [data, weights, bias], shape, dtype, scale, zero, **options)


def pool(draw):
    data = draw.pick(image)
    size, stride = sizes(draw), draw.choice([(1, 1), (2, 2), (1, 2)])
    padding = draw.choice(PADDINGS)
    rows = window(padding, data, size, stride)
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1], **activation(draw)}
    options |= {"filter_height": size[0], "filter_width": size[1]}
    kind = draw.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"])
    return draw.like(kind, [data], (data.shape[0], *rows, data.shape[3]), **options)


def padded(draw):
    """Append a PAD before a layer with windows, as frameworks without SAME write it."""
    data = draw.pick(image)
    is_pool = draw.chance(0.4)
    most = 2 if is_pool else 3  # a pool has no window in the padding only: its result would be the least number
    edges = [(0, 0), *((draw.number(0, most), draw.number(0, most)) for _ in range(2)), (0, 0)]
    shape = [n + a + b for n, (a, b) in zip(data.shape, edges, strict=True)]
    require(prod(shape) <= MOST)
    inputs = [data, draw.shape_constant(edges)]
    if is_pool:
        least = np.finfo(np.float32).min if data.dtype == "float32" else RANGES[data.dtype][0]
        fill = draw.model.constant(np.asarray([least]).astype(data.dtype), data.scale, data.zero)
        wide = draw.like("PADV2", [*inputs, fill], shape)
        if data.dtype == "float32":  # other readers could overflow, where the kernels of LiteRT differ from each other
            draw.tensors.pop()
        size = (min(3, shape[1]), min(3, shape[2]))
        options = {"padding": "VALID", "stride_h": 1, "stride_w": draw.number(1, 2), **activation(draw)}
        options |= {"filter_height": size[0], "filter_width": size[1]}
        columns = -(-(shape[2] - size[1] + 1) // options["stride_w"])
        return draw.like("MAX_POOL_2D", [wide], (shape[0], shape[1] - size[0] + 1, columns, shape[3]), **options)
    wide = draw.like("PAD", inputs, shape)
    return depthwise(draw, wide) if draw.chance(0.4) else convolution(draw, wide)


def product(draw):
    one = draw.pick(lambda two: len(two.shape) in (2, 3) and two.dtype in ("int8", "int16", "float32"))
    require(prod(one.shape) <= 600)
    shape = (*one.shape[:-2], one.shape[-1], draw.number(1, 8))
    fits = [
        two for two in draw.tensors if two.dtype == one.dtype and two.shape == (*one.shape[:-2], *one.shape[:-3:-1])
    ]
    swap = bool(fits) and draw.chance(0.6)
    other = one if swap else constant(draw, one.dtype, shape)
    columns = one.shape[-2] if swap else shape[-1]
    reach = reach_of(one) * reach_of(other) * np.sqrt(one.shape[-1]) / 6
    found = (*one.shape[:-1], columns)
    options = {"adj_x": False, "adj_y": swap}
    return draw.add("BATCH_MATMUL", [one, other], found, one.dtype, *result_of(draw, one.dtype, reach), **options)


def transposed(draw):
    data = draw.pick(image)
    require(data.dtype != "uint8")
    stride, results = draw.choice([1, 2]), draw.number(1, 6)
    shape = (data.shape[0], data.shape[1] * stride, data.shape[2] * stride, results)
    require(prod(shape) <= MOST)
    size = draw.choice([(2, 2), (3, 3)])
    fan = prod(size) * data.shape[3]
    layout = (results, *size, data.shape[3])
    weights, bias, dtype, scale, zero = convolution_numbers(draw, data, results, fan, layout, 0)
    inputs = [draw.shape_constant(shape), weights, data, bias]
    options = {"padding": "SAME", "stride_h": stride, "stride_w": stride, **NONE}
    return draw.add("TRANSPOSE_CONV", inputs, shape, dtype, scale, zero, **options)


def ghost(draw):
    data = draw.pick(image)
    one = convolution(draw, data, draw.number(2, 8), (1, 1), plain=True)
    two = depthwise(draw, one, plain=True)
    return concatenation(draw, [one, two])


def inverted(draw):
    data = draw.pick(image)
    wide = convolution(draw, data, draw.number(4, 16), (1, 1), plain=True)
    wide = depthwise(draw, wide, plain=True)
    narrow = convolution(draw, wide, data.shape[3], (1, 1), plain=True)
    return pair(draw, "ADD", data, narrow)


def excitation(draw):
    data = draw.pick(lambda one: image(one) and one.dtype != "float32")
    mean = draw.like("MEAN", [data, draw.shape_constant([1, 2])], (data.shape[0], 1, 1, data.shape[3]), keep_dims=True)
    inner = convolution(draw, mean, draw.number(1, 4), (1, 1), plain=True)
    gate = convolution(draw, inner, data.shape[3], (1, 1), plain=True)
    return pair(draw, "MUL", data, gate)


def cell(draw):
    data = draw.pick(image)
    parts = [
        attempt(convolution, draw, data, draw.number(1, 6), (1, 1), plain=True),
        attempt(convolution, draw, data, draw.number(1, 6), (3, 3), plain=True),
        attempt(depthwise, draw, data, plain=True),
    ]
    parts = [one for one in parts if one is not None]
    require(len(parts) > 1)
    return concatenation(draw, parts)
