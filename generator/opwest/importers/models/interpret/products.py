# SPDX-License-Identifier: Apache-2.0
"""Matrix products and transposed convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.hybrid import quantised
from opwest.importers.models.interpret.layers import finish
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators.fixed_point import one_quantization
from opwest.importers.models.operators.hybrid import is_asymmetric, is_batched, is_hybrid, scales_of
from opwest.importers.models.operators.transposed import transposed_window


@interprets("BATCH_MATMUL")
def product(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the last two dimensions."""
    one, other = arrays
    if is_hybrid(node):
        return _hybrid(node, one, other)
    if node.output.dtype == "int32":
        one, other = one.astype(np.int64), other.astype(np.int64)
    elif node.output.dtype != "float32":
        zeros = [one_quantization(node.input(i)).zero for i in range(2)]
        # Sums of products of int16 do not fit in float64.
        one, other = one.astype(np.int64) - zeros[0], other.astype(np.int64) - zeros[1]
    one = np.swapaxes(one, -1, -2) if node.options["adj_x"] else one
    other = np.swapaxes(other, -1, -2) if node.options["adj_y"] else other
    if node.output.dtype == "int32":
        return one @ other
    return finish(node, node.input(0), node.input(1), one @ other, None, rules)


def _hybrid(node: Node, one: Any, other: Any) -> Any:
    """Return products of rows that are quantised one by one, and matrices with one scale or one per result."""
    one = np.swapaxes(one, -1, -2) if node.options["adj_x"] else one
    other = np.swapaxes(other, -1, -2) if node.options["adj_y"] else other
    rows, scales = quantised(one.reshape(-1, one.shape[-1]), is_asymmetric(node))
    sums = rows.reshape(one.shape) @ other.astype(np.int64)
    weights = scales_of(node, 1 if is_batched(node) else other.shape[-1])
    return sums.astype(np.float32) * (scales.reshape(*one.shape[:-1], 1) * np.asarray(weights, np.float32))


@interprets("TRANSPOSE_CONV")
def transposed(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Every element of the data adds a window to the result."""
    _, weights, data, *rest = arrays
    bias = rest[0] if rest else None
    scales = None
    if is_hybrid(node):
        rows, each = quantised(data.reshape(len(data), -1), True)
        scales = each[:, None] * np.asarray(scales_of(node, len(weights)), np.float32)
        data, weights = rows.reshape(data.shape).astype(np.float64), weights.astype(np.float64)
    elif node.output.dtype != "float32":
        offsets = node.input(1).quantization
        assert offsets is not None
        data = data.astype(np.float64) - one_quantization(node.input(2)).zero
        weights = weights.astype(np.float64) - offsets.zeros[0]
    window, (n, height, width, _) = transposed_window(node), data.shape
    (top, left), (rows, columns), (sy, sx) = window.before, window.result, window.stride
    added = np.einsum("nyxc,ohwc->nyxhwo", data, weights)
    sums = np.zeros((n, rows, columns, len(weights)), data.dtype)
    for y, x, ky, kx in np.ndindex(height, width, *window.size):
        oy, ox = y * sy - top + ky, x * sx - left + kx
        if 0 <= oy < rows and 0 <= ox < columns:
            sums[:, oy, ox] += added[:, y, x, ky, kx]
    if scales is not None:
        sums = sums.astype(np.float32) * scales[:, None, None]
    return finish(node, node.input(2), node.input(1), sums, bias, rules)
