# SPDX-License-Identifier: Apache-2.0
"""Pools of one to three dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.frontends.torch.build import Builder, Context, Value, translates
from opwest.frontends.torch.layers import spread

_DIGITS = {"1d": 1, "2d": 2, "3d": 3}


def _spatial(x: Context) -> int:
    """Return the number of dimensions of the windows."""
    return next(count for text, count in _DIGITS.items() if text in x.call.operator)


def _batched(b: Builder, data: Value, spatial: int) -> Value:
    """Return data with a batch."""
    return data if data.rank == spatial + 2 else b.reshape(data, (1, *data.shape))


@translates(
    *(f"max_pool{digits}" for digits in _DIGITS),
    *(f"max_pool{digits}_with_indices" for digits in _DIGITS),
)
def max_pool(x: Context, b: Builder) -> list[Value | None]:
    """The greatest element of windows; their places are not available."""
    spatial = _spatial(x)
    data = _batched(b, x.tensor("self"), spatial)
    kernel = spread(x.integers("kernel_size"), spatial)
    options: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": spread(x.integers("stride", []) or kernel, spatial),
        "pads": spread(x.integers("padding", [0]), spatial) * 2,
        "dilations": spread(x.integers("dilation", [1]), spatial),
        "ceil_mode": int(x.flag("ceil_mode")),
    }
    shape = x.meta.shape if x.tensor("self").rank == spatial + 2 else (1, *x.meta.shape)
    result = b.reshape(b.op("MaxPool", [data], shape, **options), x.meta.shape)
    return [result, *[None] * (len(x.call.results) - 1)]


@translates(*(f"avg_pool{digits}" for digits in _DIGITS))
def average_pool(x: Context, b: Builder) -> Value:
    """Means of windows."""
    spatial = _spatial(x)
    given = x.tensor("self")
    data = _batched(b, given, spatial)
    kernel = spread(x.integers("kernel_size"), spatial)
    padding = spread(x.integers("padding", [0]), spatial)
    counts = x.flag("count_include_pad", True)
    divisor = x.get("divisor_override")
    options: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": spread(x.integers("stride", []) or kernel, spatial),
        "pads": padding * 2,
        "ceil_mode": int(x.flag("ceil_mode")),
        "count_include_pad": int(counts and any(padding)),
    }
    shape = x.meta.shape if given.rank == spatial + 2 else (1, *x.meta.shape)
    beyond = _beyond(data.shape[2:], shape[2:], options)
    if any(beyond) and (divisor is not None or (counts and any(padding))):
        # Zeros around the data: all that the divisor counts. Without divisor_override it excludes what is beyond them.
        after = [n + more for n, more in zip(padding, beyond, strict=True)] if divisor is not None else padding
        pads = [0, 0, *padding, 0, 0, *after]
        padded = [n + a + c for n, a, c in zip(data.shape[2:], padding, after, strict=True)]
        data = b.op("Pad", [data, b.ints(pads)], (*data.shape[:2], *padded), mode="constant")
        options |= {"pads": [0] * 2 * spatial, "count_include_pad": 0, "ceil_mode": int(divisor is None)}
    elif divisor is not None:
        options["count_include_pad"] = int(any(padding))
    windows = [_windows(n, place, options) for place, n in enumerate(data.shape[2:])]
    means = b.op("AveragePool", [data], (*shape[:2], *windows), **options)
    for axis, n in enumerate(shape[2:], 2):  # a window that starts in the padding is no part of the result
        means = b.slice(means, axis, 0, n)
    if divisor is not None:
        means = b.binary("Mul", means, prod(kernel) / float(divisor))
    return b.reshape(means, x.meta.shape)


def _windows(n: int, place: int, options: Mapping[str, Any]) -> int:
    """Return the number of windows of one dimension. Source: onnx/docs/Operators.md, AveragePool."""
    kernel, stride, pad = (options[name][place] for name in ("kernel_shape", "strides", "pads"))
    rest = n + 2 * pad - kernel
    if not options["ceil_mode"]:
        return int(rest // stride) + 1
    count = -(-rest // stride) + 1
    return int(count - 1 if (count - 1) * stride >= n + pad else count)


def _beyond(sizes: Sequence[int], results: Sequence[int], options: Mapping[str, Any]) -> list[int]:
    """Return the elements of the last window of each dimension that are neither data nor padding."""
    parts = zip(sizes, results, options["kernel_shape"], options["strides"], options["pads"], strict=False)
    return [max(0, (out - 1) * stride + kernel - n - 2 * pad) for n, out, kernel, stride, pad in parts]


@translates(
    *(f"adaptive_avg_pool{digits}" for digits in _DIGITS),
    *(f"_adaptive_avg_pool{digits}" for digits in ("2d", "3d")),
    *(f"adaptive_max_pool{digits}" for digits in _DIGITS),
)
def adaptive(x: Context, b: Builder) -> Value | list[Value | None]:
    """Windows whose number is given: equal ones are a pool, others a product with the parts of each window."""
    spatial = _spatial(x)
    given = x.tensor("self")
    data = _batched(b, given, spatial)
    is_max = "max" in x.call.operator
    sizes = data.shape[2:]
    wanted = [n if out == -1 else out for n, out in zip(sizes, x.meta.shape[-spatial:], strict=True)]
    made = _adaptive(b, data, wanted, is_max=is_max)
    result = b.reshape(made, x.meta.shape)
    return [result, *[None] * (len(x.call.results) - 1)] if is_max else result


def _adaptive(b: Builder, data: Value, wanted: Sequence[int], *, is_max: bool) -> Value:
    sizes = data.shape[2:]
    shape = (*data.shape[:2], *wanted)
    if all(out == 1 for out in wanted):
        axes = b.ints(range(2, data.rank))
        return b.op("ReduceMax" if is_max else "ReduceMean", [data, axes], shape, keepdims=1)
    if all(n % out == 0 for n, out in zip(sizes, wanted, strict=True)):
        kernel = [n // out for n, out in zip(sizes, wanted, strict=True)]
        return b.op("MaxPool" if is_max else "AveragePool", [data], shape, kernel_shape=kernel, strides=kernel)
    for axis, (n, out) in enumerate(zip(sizes, wanted, strict=True), 2):
        if n == out:
            continue
        # Window i reaches from floor(i * n / out) to ceil((i + 1) * n / out).
        if is_max:
            data = _greatest(b, data, axis, [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)])
            continue
        weights = np.zeros((n, out), np.float32)
        for window in range(out):
            start, stop = window * n // out, -(-(window + 1) * n // out)
            weights[start:stop, window] = 1 / (stop - start)
        order = [*(i for i in range(data.rank) if i != axis), axis]
        moved = b.transpose(data, order)
        product = b.op("MatMul", [moved, b.constant(weights)], (*moved.shape[:-1], out))
        data = b.transpose(product, [order.index(i) for i in range(data.rank)])
    return data


def _greatest(b: Builder, data: Value, axis: int, windows: Sequence[tuple[int, int]]) -> Value:
    """Return the greatest elements of windows of one dimension."""
    shape = [1 if i == axis else n for i, n in enumerate(data.shape)]
    parts = [b.slice(data, axis, start, stop) for start, stop in windows]
    return b.concat([b.op("ReduceMax", [part, b.ints([axis])], shape, keepdims=1) for part in parts], axis)
