# SPDX-License-Identifier: Apache-2.0
"""Pools of one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
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
    if options["ceil_mode"] and (counts and any(padding)) and _overhangs(data.shape[2:], shape[2:], options):
        raise Unsupported(
            "ceil_mode with windows beyond counted padding", "ceil_mode=False, or count_include_pad=False"
        )
    if divisor is not None:
        # Sums are means of windows of which each has all elements.
        if options["ceil_mode"] and _overhangs(data.shape[2:], shape[2:], options):
            raise Unsupported("divisor_override with windows beyond the data", "ceil_mode=False")
        options["count_include_pad"] = int(any(padding))
        mean = b.op("AveragePool", [data], shape, **options)
        return b.reshape(b.binary("Mul", mean, prod(kernel) / float(divisor)), x.meta.shape)
    return b.reshape(b.op("AveragePool", [data], shape, **options), x.meta.shape)


def _overhangs(sizes: Sequence[int], results: Sequence[int], options: dict[str, Sequence[int]]) -> bool:
    """Return whether a window of ceil_mode contains more than data and padding."""
    parts = zip(sizes, results, options["kernel_shape"], options["strides"], options["pads"], strict=False)
    return any((out - 1) * stride + kernel > n + 2 * pad for n, out, kernel, stride, pad in parts)


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
    if is_max:
        raise Unsupported(f"windows of unequal sizes: {list(sizes)} to {list(wanted)}", "multiples")
    for axis, (n, out) in enumerate(zip(sizes, wanted, strict=True), 2):
        if n == out:
            continue
        # Window i reaches from floor(i * n / out) to ceil((i + 1) * n / out).
        weights = np.zeros((n, out), np.float32)
        for window in range(out):
            start, stop = window * n // out, -(-(window + 1) * n // out)
            weights[start:stop, window] = 1 / (stop - start)
        order = [*(i for i in range(data.rank) if i != axis), axis]
        moved = b.transpose(data, order)
        product = b.op("MatMul", [moved, b.constant(weights)], (*moved.shape[:-1], out))
        data = b.transpose(product, [order.index(i) for i in range(data.rank)])
    return data


@translates("lp_pool1d", "lp_pool2d")
def refused(x: Context, b: Builder) -> Value:
    """No form."""
    raise Unsupported("unsupported operator", "avg_pool or max_pool")
