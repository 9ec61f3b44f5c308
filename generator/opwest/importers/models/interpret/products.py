# SPDX-License-Identifier: Apache-2.0
"""Matrix products and transposed convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.hybrid import integers, quantised
from opwest.importers.models.interpret.layers import finish
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators.fixed_point import one_quantization
from opwest.importers.models.operators.hybrid import is_hybrid, scales_of
from opwest.importers.models.operators.transposed import transposed_window


@interprets("BATCH_MATMUL")
def product(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the last two dimensions."""
    one, other = arrays
    if is_hybrid(node):
        rows, weights, scales = integers(node, arrays)
        sums = rows.reshape(-1, weights.shape[1]) @ weights.T
        return sums.astype(np.float32) * scales
    if node.output.dtype != "float32":
        zeros = [one_quantization(node.input(i)).zero for i in range(2)]
        # Sums of products of int16 do not fit in float64.
        one, other = one.astype(np.int64) - zeros[0], other.astype(np.int64) - zeros[1]
    one = np.swapaxes(one, -1, -2) if node.options["adj_x"] else one
    other = np.swapaxes(other, -1, -2) if node.options["adj_y"] else other
    return finish(node, node.input(0), node.input(1), one @ other, None, rules)


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
