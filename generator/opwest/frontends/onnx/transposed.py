# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.frontends.onnx.elements import settle_float
from opwest.frontends.onnx.layers import layer_inputs, weights_of
from opwest.frontends.onnx.translation import Translation, channels_last, permuted, translates
from opwest.frontends.onnx.values import Item, Op
from opwest.frontends.onnx.windows import stretched


def _image(op: Op) -> Item:
    data = op.input(0)
    if data.rank not in (3, 4):
        raise Unsupported(f"data {list(data.known)}", "3 or 4 dimensions")
    return data


@translates("ConvTranspose")
def transposed(op: Op, t: Translation) -> None:
    """Without padding, then the padding is cut off; groups one by one, dilations as zeros in the weights."""
    data, item = _image(op), op.input(1)
    order = channels_last(data.rank)
    spatial = data.rank - 2
    groups = int(op.get("group", 1))
    strides = list(op.get("strides", [1] * spatial))
    dilations = list(op.get("dilations", [1] * spatial))
    if groups < 1 or item.rank != data.rank or item.known[0] != data.known[1] or item.known[0] % groups:
        raise Unsupported(f"data {list(data.known)}, weights {list(item.known)}, {groups} groups")
    end = t.end(op)
    weights = weights_of(t, op, 1, end)
    kernel = weights.content  # [o / groups, c, kernel...]
    kernel = kernel if spatial == 2 else kernel[:, :, None, :]
    one = [1] if spatial == 1 else []
    strides, dilations = [*one, *strides], [*one, *dilations]
    zero = 0 if weights.quantization is None else weights.quantization.zeros[0]
    kernel = _dilated(kernel, dilations, zero)
    source = stretched(t, t.ordered(t.real[data], order) if weights.quantization else t.tensor(data, order))
    full = [(n - 1) * s + k for n, s, k in zip(source.shape[1:3], strides, kernel.shape[2:], strict=True)]
    before, out = _cut(op, full, spatial), permuted(end.item.known, order)
    wide = out if spatial == 2 else (out[0], 1, *out[1:])
    # output_padding can add rows and columns after the last window: zeros at the end of the weights reach them.
    more = [max(0, first + n - have) for first, n, have in zip(before, wide[1:3], full, strict=True)]
    kernel = np.pad(kernel, [(0, 0), (0, 0), *[(0, n) for n in more]], constant_values=zero)
    full = [have + n for have, n in zip(full, more, strict=True)]
    parts = []
    each, depth = len(kernel), source.shape[3] // groups
    for group in range(groups):
        content = np.transpose(kernel[:, group * depth : (group + 1) * depth], (0, 2, 3, 1))
        bias = None if weights.bias is None else weights.bias[group * each : (group + 1) * each]
        given = source if groups == 1 else _channels(t, source, group * depth, depth)
        operands = layer_inputs(t, given, type(weights)(content, weights.quantization, bias), content, 0)
        shape = (source.shape[0], *full, each)
        size = t.constant(np.asarray(shape, np.int32), "shape")
        quantization = end.target.quantization if weights.quantization and end.target else None
        parts.append(
            t.emit(
                "TRANSPOSE_CONV",
                [size, operands[1], operands[0], *operands[2:]],
                shape,
                "float32" if quantization is None else "int8",
                quantization,
                end.item.name,
                padding="VALID",
                stride_h=strides[0],
                stride_w=strides[1],
                fused_activation_function=end.activation,
            )
        )
    total = parts[0]
    if groups > 1:
        shape = (*total.shape[:3], each * groups)
        total = t.emit(
            "CONCATENATION", parts, shape, total.dtype, total.quantization, axis=3, fused_activation_function="NONE"
        )
    total = _fitted(t, total, before, wide)
    total = t.reshape(total, out)
    if total.dtype == "float32":
        settle_float(t, end, total, order)
    else:
        t.settle(end, total, order)


def _dilated(kernel: Any, dilations: list[int], zero: int) -> Any:
    if dilations == [1, 1]:
        return kernel
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilations, strict=True)]
    found = np.full((*kernel.shape[:2], *sizes), zero, kernel.dtype)
    found[:, :, :: dilations[0], :: dilations[1]] = kernel
    return found


def _cut(op: Op, full: list[int], spatial: int) -> list[int]:
    """Return the rows and columns to cut off before the result. Source: onnx/docs/Operators.md, ConvTranspose."""
    pads = list(op.get("pads", [0] * (2 * spatial)))
    out = list(op.output.known[2:])
    if len(pads) != 2 * spatial:
        raise Unsupported(f"pads {pads}", f"{2 * spatial} numbers")
    automatic = op.get("auto_pad", "NOTSET")
    added = list(op.get("output_padding", [0] * spatial))
    before = []
    for axis in range(spatial):
        first = pads[axis]
        if op.get("output_shape", None) is not None or automatic.startswith("SAME"):
            total = max(0, full[axis + 2 - spatial] + added[axis] - out[axis])
            first = total // 2 if automatic != "SAME_LOWER" else total - total // 2
            if automatic == "NOTSET":
                first = total - total // 2
        elif automatic == "VALID":
            first = 0
        before.append(first)
    return before if spatial == 2 else [0, *before]


def _channels(t: Translation, tensor: Tensor, start: int, count: int) -> Tensor:
    begin = t.constant(np.asarray([0, 0, 0, start], np.int32), "begin")
    shape = (*tensor.shape[:3], count)
    size = t.constant(np.asarray(shape, np.int32), "size")
    return t.emit("SLICE", [tensor, begin, size], shape, tensor.dtype, tensor.quantization)


def _fitted(t: Translation, tensor: Tensor, before: list[int], wanted: Any) -> Tensor:
    """Cut off rows and columns before and after."""
    have = list(tensor.shape)
    shape = [have[0], min(have[1] - before[0], wanted[1]), min(have[2] - before[1], wanted[2]), have[3]]
    if min(before) < 0 or min(shape) < 1:
        raise Unsupported(f"pads of {before} before the result", "pads that leave a result")
    if shape != have:
        begin = t.constant(np.asarray([0, *before, 0], np.int32), "begin")
        size = t.constant(np.asarray(shape, np.int32), "size")
        tensor = t.emit("SLICE", [tensor, begin, size], tuple(shape), tensor.dtype, tensor.quantization)
    if tuple(shape) != tuple(wanted):
        raise Unsupported(f"a result {list(wanted)} of windows that reach {have}")
    return tensor
