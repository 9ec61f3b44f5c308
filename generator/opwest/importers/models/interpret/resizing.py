# SPDX-License-Identifier: Apache-2.0
"""Images of another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import resizing


@interprets("RESIZE_NEAREST_NEIGHBOR")
def nearest(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Repeated or omitted rows and columns."""
    rows, columns = (list(resizing.nearest(node, axis)) for axis in (1, 2))
    return arrays[0][:, rows][:, :, columns]


@interprets("RESIZE_BILINEAR")
def bilinear(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Weighted means of four elements, in the order of the reference kernel."""
    return interpolated(arrays[0], resizing.line(node, 1), resizing.line(node, 2))


def interpolated(image: Any, rows: resizing.Line, columns: resizing.Line) -> Any:
    """Return weighted means of four elements of [n,h,w,c]."""
    is_fixed = image.dtype in (np.int8, np.int16)
    data = image.astype(np.int64 if is_fixed else np.float32)
    dtype = data.dtype
    y0, y1, wy, ry = (np.asarray(one) for one in (rows.first, rows.second, rows.weights, rows.rests))
    x0, x1, wx, rx = (np.asarray(one) for one in (columns.first, columns.second, columns.weights, columns.rests))
    wy, ry = (one.astype(dtype)[:, None, None] for one in (wy, ry))
    wx, rx = (one.astype(dtype)[:, None] for one in (wx, rx))
    total = data[:, y0][:, :, x0] * ry * rx + data[:, y1][:, :, x0] * wy * rx
    total = total + data[:, y0][:, :, x1] * ry * wx + data[:, y1][:, :, x1] * wy * wx
    if is_fixed:
        rounded = total + np.where(total > 0, 1 << 19, -(1 << 19))
        return np.where(rounded < 0, -(-rounded >> 20), rounded >> 20)
    return total if image.dtype == np.float32 else np.trunc(total + np.float32(0.5))
