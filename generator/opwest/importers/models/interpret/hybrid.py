# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.interpret.registry import Arrays
from opwest.importers.models.operators import hybrid


def quantised(rows: Any, is_asymmetric: bool) -> tuple[Any, Any]:
    """Return the quantised rows without their zero points as int64, and their scales: rows [n, length] float32."""
    found, scales = np.zeros(rows.shape, np.int64), np.ones(len(rows), np.float32)
    for number, row in enumerate(rows):
        low, high = min(0.0, float(row.min())), max(0.0, float(row.max()))
        if low == high:
            continue
        if is_asymmetric:
            scale = (high - low) / 255.0
            from_low, from_high = -128.0 - low / scale, 127.0 - high / scale
            zero = from_low if 128.0 + abs(low / scale) < 127.0 + abs(high / scale) else from_high
            offset = int(np.clip(np.floor(abs(zero) + 0.5) * np.sign(zero), -128, 127))
            scales[number] = scale
            values = np.float32(offset) + row * (np.float32(1.0) / scales[number])
            found[number] = np.clip(_rounded(values), -128, 127) - offset
        else:
            reach = np.float32(max(-low, high))
            scales[number] = reach / np.float32(127)
            found[number] = np.clip(_rounded(row * (np.float32(127) / reach)), -127, 127)
    return found, scales


def _rounded(values: Any) -> Any:
    """Return the nearest integers of float32 values, halves away from zero."""
    wide = values.astype(np.float64)
    return (np.floor(np.abs(wide) + 0.5) * np.sign(wide)).astype(np.int64)


def integers(node: Node, arrays: Arrays) -> tuple[Any, Any, Any]:
    """Return data and weights as whole float64 numbers, and the scale of each sum: [rows, results] in float32."""
    data, weights = arrays[0], arrays[1].astype(np.float64)
    count = weights.shape[3] if node.kind == "DEPTHWISE_CONV_2D" else len(weights)
    length = weights.shape[1] if weights.ndim == 2 else data[0].size
    rows, scales = quantised(data.reshape(-1, length), hybrid.is_asymmetric(node))
    each = np.asarray(hybrid.scales_of(node, count), np.float32)
    return rows.reshape(data.shape).astype(np.float64), weights, scales[:, None] * each
