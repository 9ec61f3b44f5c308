# SPDX-License-Identifier: Apache-2.0
"""Pools: elements of the padding do not count."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.layers import patches
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import pooling
from opwest.importers.models.operators.fixed_point import activation_range, limits_of


@interprets("AVERAGE_POOL_2D")
def average(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: the integer mean of the stored values, rounded to nearest with halves away from zero."""
    [data] = arrays
    window = pooling.window(node)
    is_float = data.dtype == np.float32
    taken = patches(data.astype(np.float32 if is_float else np.int64), window, 0)
    counts = patches(np.ones((1, *data.shape[1:3], 1), np.int64), window, 0).sum(axis=(3, 4))
    sums = taken.sum(axis=(3, 4))
    if is_float:
        return np.clip(sums / counts.astype(np.float32), *limits_of(node.options["fused_activation_function"]))
    half = np.where(sums > 0, counts // 2, -(counts // 2))
    means = np.trunc((sums + half) / counts).astype(np.int64)
    return np.clip(means, *activation_range(node.options["fused_activation_function"], node.output))


@interprets("MAX_POOL_2D")
def maximum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The greatest stored value."""
    [data] = arrays
    if data.dtype == np.float32:
        found = patches(data, pooling.window(node), np.finfo(np.float32).min).max(axis=(3, 4))
        return np.clip(found, *limits_of(node.options["fused_activation_function"]))
    found = patches(data.astype(np.int64), pooling.window(node), -(1 << 40)).max(axis=(3, 4))
    return np.clip(found, *activation_range(node.options["fused_activation_function"], node.output))


@interprets("L2_POOL_2D")
def root_mean_square(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The root of the mean of the squares."""
    [data] = arrays
    window = pooling.window(node)
    counts = patches(np.ones((1, *data.shape[1:3], 1), np.float32), window, 0).sum(axis=(3, 4))
    found = np.sqrt((patches(data, window, 0) ** 2).sum(axis=(3, 4)) / counts)
    return np.clip(found, *limits_of(node.options["fused_activation_function"]))
