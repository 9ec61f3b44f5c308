# SPDX-License-Identifier: Apache-2.0
"""Pools of one to three dimensions. Source: onnx/docs/Operators.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import Quantization, Shape, Tensor, Unsupported
from opwest.frontends.onnx.layers import append_layer, layer_data, weights_of
from opwest.frontends.onnx.movement import numbers, same, sliced
from opwest.frontends.onnx.reductions import append_reduction
from opwest.frontends.onnx.translation import Epilogue, Translation, channels_last, permuted, translates
from opwest.frontends.onnx.values import Item, Op
from opwest.frontends.onnx.windows import as_image, image_padding, narrowed


@translates("ConvTranspose")
def transposed(op: Op, t: Translation) -> None:
    """Without padding, then the padding is cut off; groups one by one, dilations as zeros in the weights."""
    data, item = op.input(0), op.input(1)
    if data.rank not in (3, 4):
        raise Unsupported(f"data {list(data.known)}", "3 or 4 dimensions")
    order = channels_last(data.rank)
    spatial = data.rank - 2
    groups = int(op.get("group", 1))
    strides = list(op.get("strides", [1] * spatial))
    dilations = list(op.get("dilations", [1] * spatial))
    if groups < 1 or item.rank != data.rank or item.known[0] != data.known[1] or item.known[0] % groups:
        raise Unsupported(f"data {list(data.known)}, weights {list(item.known)}, {counted(groups, 'group')}")
    end = t.end(op)
    weights = weights_of(t, op, 1, end)
    kernel = weights.content  # [o / groups, c, kernel...]
    kernel = kernel if spatial == 2 else kernel[:, :, None, :]
    if spatial == 1:
        strides, dilations = [1, *strides], [1, *dilations]
    zero = 0 if weights.quantization is None else weights.quantization.zeros[0]
    kernel = _dilated(kernel, dilations, zero)
    source = layer_data(t, data, weights, order)
    source = t.reshape(source, as_image(source.shape))
    full = [(n - 1) * s + k for n, s, k in zip(source.shape[1:3], strides, kernel.shape[2:], strict=True)]
    before, out = _cut(op, full, spatial), permuted(end.item.known, order)
    wide = as_image(out)
    # output_padding can add rows and columns after the last window: zeros at the end of the weights reach them.
    more = [max(0, first + n - have) for first, n, have in zip(before, wide[1:3], full, strict=True)]
    kernel = np.pad(kernel, [(0, 0), (0, 0), *[(0, n) for n in more]], constant_values=zero)
    full = [have + n for have, n in zip(full, more, strict=True)]
    parts = []
    each, depth = len(kernel), source.shape[3] // groups
    for group in range(groups):
        content = np.transpose(kernel[:, group * depth : (group + 1) * depth], (0, 2, 3, 1))
        bias = None if weights.bias is None else weights.bias[group * each : (group + 1) * each]
        given = source
        if groups > 1:
            given = sliced(t, source, [0, 0, 0, group * depth], (*source.shape[:3], depth))
        part = dataclasses.replace(weights, bias=bias)
        options = {"padding": "VALID", "stride_h": strides[0], "stride_w": strides[1]}
        shape = (source.shape[0], *full, each)
        parts.append(append_layer(t, end, "TRANSPOSE_CONV", given, part, content, shape, **options))
    total = parts[0]
    if groups > 1:
        total = same(t, "CONCATENATION", parts, (*total.shape[:3], each * groups), axis=3)
    t.settle(end, t.reshape(_fitted(t, total, before, wide), out), order)


def _dilated(kernel: Any, dilations: list[int], zero: int) -> Any:
    if dilations == [1, 1]:
        return kernel
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilations, strict=True)]
    wide = np.full((*kernel.shape[:2], *sizes), zero, kernel.dtype)
    wide[:, :, :: dilations[0], :: dilations[1]] = kernel
    return wide


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
            first = total - total // 2 if automatic in ("NOTSET", "SAME_LOWER") else total // 2
        elif automatic == "VALID":
            first = 0
        before.append(first)
    return before if spatial == 2 else [0, *before]


def _fitted(t: Translation, tensor: Tensor, before: list[int], wanted: Any) -> Tensor:
    """Cut off rows and columns before and after."""
    have = list(tensor.shape)
    shape = [have[0], min(have[1] - before[0], wanted[1]), min(have[2] - before[1], wanted[2]), have[3]]
    if min(before) < 0 or min(shape) < 1:
        raise Unsupported(f"pads of {before} before the result", "pads that leave a result")
    if shape != have:
        tensor = sliced(t, tensor, [0, *before, 0], shape)
    if tuple(shape) != tuple(wanted):
        raise Unsupported(f"a result {list(wanted)} of windows that reach {have}")
    return tensor


def _pooled(op: Op) -> Item:
    """Return the data of a pool of one to three dimensions."""
    data, kernel = op.input(0), op.get("kernel_shape", None)
    if data.rank not in (3, 4, 5):
        raise Unsupported(f"data {list(data.known)}", "3 to 5 dimensions")
    if kernel is None or len(kernel) != data.rank - 2:
        raise Unsupported(f"kernel_shape {kernel}", f"{data.rank - 2} numbers")
    return data


def _options(op: Op, image: Sequence[int]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Return the options of a pool, and the rows and columns that ceil_mode adds after its padding."""
    kernel = list(op.get("kernel_shape", None))
    automatic, dilations = op.get("auto_pad", "NOTSET"), list(op.get("dilations", ()))
    if automatic.startswith("SAME") and any(dilation != 1 for dilation in dilations):
        # onnxruntime pads without regard to the dilations, and its result is smaller than the specified one.
        raise Unsupported(f"auto_pad {automatic} with dilations {dilations}", "pads")
    options, extra = image_padding(op, image, kernel)
    options["filter_height"], options["filter_width"] = [1, *kernel][-2:]
    options["fused_activation_function"] = "NONE"
    if op.kind == "AveragePool":
        del options["dilation_h_factor"], options["dilation_w_factor"]
    return options, extra


def _covering(options: dict[str, Any], extra: Sequence[int]) -> dict[str, Any]:
    """Return options whose padding contains what ceil_mode adds."""
    top, left, bottom, right = options["padding"]
    return {**options, "padding": (top, left, bottom + extra[0], right + extra[1])}


Make = Callable[[Tensor, dict[str, Any], Sequence[int], Shape], Tensor]
"""Appends a pool over an image [n,h,w,c]: image, options, what ceil_mode adds, shape of the result."""


def _by_planes(t: Translation, op: Op, source: Tensor, out: Shape, make: Make) -> Tensor:
    """Return the pool of data with channels last; three dimensions are two and then one: both kinds are separable."""
    if len(source.shape) == 5:
        n, depth, rows, columns, channels = source.shape
        plane = t.reshape(source, (n * depth, rows, columns, channels))
        flat = _options(narrowed(op, (1, 2), 3), (rows, columns))
        plane = make(plane, *flat, (n * depth, out[2], out[3], channels))
        wide = out[2] * out[3] * channels
        plane = t.reshape(plane, (n, 1, depth, wide))
        return t.reshape(make(plane, *_options(narrowed(op, (0,), 3), (depth,)), (n, 1, out[1], wide)), out)
    image = t.reshape(source, as_image(source.shape))
    return t.reshape(make(image, *_options(op, source.shape[1:-1]), as_image(out)), out)


@translates("MaxPool")
def max_pool(op: Op, t: Translation) -> None:
    """The greatest of integers belongs to the greatest real value."""
    data, result = _pooled(op), op.output
    order = channels_last(data.rank)
    source = t.as_stored(data, order)
    if source.dtype not in ("float32", "int8") and source.quantization is None:
        raise Unsupported(f"MaxPool of {data.dtype}", "float32 or int8")
    if source.dtype == "int8" and source.quantization is None:
        source.quantization = Quantization((1.0,), (0,))

    def make(image: Tensor, options: dict[str, Any], extra: Sequence[int], shape: Shape) -> Tensor:
        return same(t, "MAX_POOL_2D", [image], shape, **_covering(options, extra))

    t.put_like(data, result, _by_planes(t, op, source, permuted(result.known, order), make), order)


@translates("GlobalMaxPool", "GlobalAveragePool")
def global_pool(op: Op, t: Translation) -> None:
    """A reduction over the image; a mean is quantised if data and result are."""
    data = op.input(0)
    order = channels_last(data.rank)
    kind = "REDUCE_MAX" if op.kind == "GlobalMaxPool" else "MEAN"
    end = t.end(op, False)
    is_weighted = end.quantization is not None and t.rules.float_requantization and data.rank in (3, 4)
    if kind == "MEAN" and data in t.real and is_weighted:
        sizes = [1, *data.known[2:]][-2:]
        _weighted(t, end, t.ordered(t.real[data], order), sizes, {"padding": "VALID", "stride_h": 1, "stride_w": 1})
        return
    append_reduction(op, t, kind, order, range(1, data.rank - 1), order, is_exact=False)


def _weighted(t: Translation, end: Epilogue, source: Tensor, sizes: list[int], options: dict[str, Any]) -> None:
    """Append a mean of whole windows as a depthwise convolution with equal weights: the sums are exact."""
    weights = np.ones((1, *sizes, source.shape[-1]), np.int8)
    scale = Quantization((float(np.float32(1 / prod(sizes))),), (0,))
    order = channels_last(end.item.rank)
    out = permuted(end.item.known, order)
    inputs = [t.reshape(source, as_image(source.shape)), t.constant(weights, "weights", scale)]
    tensor = t.emit("DEPTHWISE_CONV_2D", inputs, as_image(out), "int8", end.quantization, end.item.name, **options)
    t.settle(end, t.reshape(tensor, out), order)


@translates("AveragePool")
def average_pool(op: Op, t: Translation) -> None:
    """Padding counts with count_include_pad only."""
    data = _pooled(op)
    if any(dilation != 1 for dilation in op.get("dilations", ())):
        raise Unsupported(f"dilations {list(op.get('dilations', ()))}", "1 in each dimension")
    order = channels_last(data.rank)
    end = t.end(op, False)
    counts = bool(op.get("count_include_pad", 0))
    # Means often lie between two integers. Between QuantizeLinear operators onnxruntime computes them in float32.
    is_float = t.rules.float_requantization and not op.is_integer
    has_integers = data in t.real and end.quantization is not None and not is_float and data.rank < 5
    if has_integers and _by_integers(t, op, end, counts):
        return

    def make(image: Tensor, options: dict[str, Any], extra: Sequence[int], shape: Shape) -> Tensor:
        top, left, bottom, right = options["padding"]
        if counts and any(options["padding"]):
            pads = numbers(t, [[0, 0], [top, bottom], [left, right], [0, 0]], "pads")
            n, height, width, depth = image.shape
            image = t.emit("PAD", [image, pads], (n, height + top + bottom, width + left + right, depth))
            options = {**options, "padding": (0, 0, 0, 0)}
        return t.emit("AVERAGE_POOL_2D", [image], shape, **_covering(options, extra))

    source = t.tensor(data, order)
    t.settle(end, _by_planes(t, op, source, permuted(op.output.known, order), make), order)


def _by_integers(t: Translation, op: Op, end: Epilogue, counts: bool) -> bool:
    """Append a mean of integers; return whether there is a form with the rule of the model."""
    data = op.input(0)
    order = channels_last(data.rank)
    options, extra = _options(op, data.known[2:])
    has_padding = any(options["padding"])
    source = t.ordered(t.real[data], order)
    is_same = source.quantization == end.quantization
    whole = not any(extra) and (counts or not has_padding)
    if whole and (not is_same or t.rules.float_requantization or has_padding):
        sizes = [options.pop("filter_height"), options.pop("filter_width")]
        _weighted(t, end, source, sizes, options)
        return True
    if is_same and not counts and not t.rules.float_requantization:
        out = permuted(op.output.known, order)
        image = t.reshape(source, as_image(source.shape))
        means = same(t, "AVERAGE_POOL_2D", [image], as_image(out), **_covering(options, extra))
        t.settle(end, t.reshape(means, out), order)
        return True
    return False
