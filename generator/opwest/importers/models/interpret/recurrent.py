# SPDX-License-Identifier: Apache-2.0
"""Layers with a state. The array of a state is changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators.fixed_point import limits_of, one_quantization
from opwest.importers.models.operators.recurrent import BIASES, WEIGHTS, svdf_numbers


@interprets("SVDF")
def svdf(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The state holds the last products with the weights of the features, for each filter."""
    data, feature, time, bias, state = arrays
    filters, memory = time.shape
    units = filters // int(node.options["rank"])
    history = state.reshape(len(data), filters, memory)
    history[..., :-1] = history[..., 1:].copy()
    if data.dtype == np.float32:
        history[..., -1] = data @ feature.T
        total = (history * time).sum(axis=-1).reshape(len(data), units, -1).sum(axis=-1)
        total = total if bias is None else total + bias
        return np.clip(total, *limits_of(node.options["fused_activation_function"]))
    inner, outer = svdf_numbers(node)
    zero = one_quantization(node.input(0)).zero
    state_zero = one_quantization(node.input(4)).zero
    history[..., -1] = inner.apply((data.astype(np.int64) - zero) @ feature.T.astype(np.int64)) + state_zero
    products = (history.astype(np.int64) - state_zero) * time
    total = products.sum(axis=-1).reshape(len(data), units, -1).sum(axis=-1)
    return outer.apply(total if bias is None else total + bias)


@interprets("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Four gates; the first dimension of the data is the time if the option is set, otherwise the second one."""
    data = arrays[0] if node.options["time_major"] else np.swapaxes(arrays[0], 0, 1)
    weights = [arrays[i] for i in WEIGHTS]
    biases = [arrays[i].reshape(-1) for i in BIASES]
    last, cell = (arrays[i].reshape(data.shape[1], -1) for i in (18, 19))
    clip, results = float(node.options["cell_clip"]), []
    for step in data:
        sums = [step @ weights[g].T + last @ weights[4 + g].T + biases[g] for g in range(4)]
        enter, forget, leave = (1 / (1 + np.exp(-sums[g])) for g in (0, 1, 3))
        cell[:] = cell * forget + enter * np.tanh(sums[2])
        if clip > 0:
            cell[:] = np.clip(cell, -clip, clip)
        last[:] = leave * np.tanh(cell)
        results.append(last.copy())
    found = np.stack(results)
    return found if node.options["time_major"] else np.swapaxes(found, 0, 1)
