# SPDX-License-Identifier: Apache-2.0
"""Layers with a state. The array of a state is changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.hybrid import quantised
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators.fixed_point import limits_of, one_quantization
from opwest.importers.models.operators.recurrent import hybrid_scales, svdf_numbers, time_weights


@interprets("SVDF")
def svdf(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The state holds the last products with the weights of the features, for each filter."""
    data, feature, time, bias, state = arrays
    filters, memory = time.shape
    units = filters // int(node.options["rank"])
    history = state.reshape(len(data), filters, memory)
    history[..., :-1] = history[..., 1:].copy()
    if data.dtype == np.float32:
        scales = hybrid_scales(node)
        if scales is None:
            history[..., -1] = data @ feature.T
        else:
            rows, each = quantised(data, bool(node.options["asymmetric_quantize_inputs"]))
            history[..., -1] = (rows @ feature.T.astype(np.int64)).astype(np.float32)
            history[..., -1] *= (each * np.float32(scales.feature))[:, None]
            time = time_weights(time, scales)
        total = (history * time).sum(axis=-1).reshape(len(data), units, -1).sum(axis=-1)
        total = total if bias is None else total + bias
        return np.clip(total, *limits_of(node.options["fused_activation_function"]))
    inner, outer = svdf_numbers(node)
    zero = one_quantization(node.input(0)).zero
    state_zero = one_quantization(node.input(4)).zero
    history[..., -1] = inner.apply((data.astype(np.int64) - zero) @ feature.T.astype(np.int64)) + state_zero
    products = (history.astype(np.int64) - state_zero) * time
    total = products.sum(axis=-1).reshape(len(data), units, -1).sum(axis=-1)
    total = total if bias is None else total + bias
    return outer.apply(total.astype(np.int32).astype(np.int64))  # the reference has sums of 32 bits
