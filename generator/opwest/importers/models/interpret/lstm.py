# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM with float32 or hybrid data. The arrays of the states are changed in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.hybrid import quantised
from opwest.importers.models.interpret.lstm_integer import IntegerCell
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import lstm as rules_of
from opwest.importers.models.operators.lstm_numbers import lstm_numbers

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "TANH": np.tanh,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
}


@interprets("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One step of all batches after another."""
    is_time_major = bool(node.options["time_major"])
    data = arrays[0] if is_time_major else np.swapaxes(arrays[0], 0, 1)
    batch = data.shape[1]
    arrays = [*arrays, *[None] * (24 - len(arrays))]
    last, cells = (arrays[i].reshape(batch, -1) for i in (rules_of.LAST, rules_of.CELLS))
    integers = None if data.dtype == np.float32 else IntegerCell(arrays, lstm_numbers(node))
    results = []
    for one in data:
        last[:] = integers.step(one, last, cells) if integers else _float_step(node, arrays, one, last, cells)
        results.append(last.copy())
    found = np.stack(results)
    return found if is_time_major else np.swapaxes(found, 0, 1)


def _product(node: Node, arrays: Arrays, number: int, data: Any) -> Any:
    """Return the products of rows with weights, which are float32 or int8."""
    weights = arrays[number]
    if weights.dtype == np.float32:
        return data @ weights.T
    rows, scales = quantised(data, bool(node.options["asymmetric_quantize_inputs"]))
    sums = (rows @ weights.T.astype(np.int64)).astype(np.float32)
    return sums * (scales * np.float32(rules_of.scale_of_weights(node, number)))[:, None]


def _float_step(node: Node, arrays: Arrays, data: Any, last: Any, cells: Any) -> Any:
    """Return the next results; the cells are changed."""
    function = ACTIVATIONS[str(node.options["fused_activation_function"])]

    def gate(g: int, peephole: int | None = None) -> Any:
        norm, bias = arrays[rules_of.NORMS[g]], arrays[rules_of.BIASES[g]]
        total = 0 if norm is not None else bias
        total = total + _product(node, arrays, rules_of.DATA_WEIGHTS[g], data)
        total = total + _product(node, arrays, rules_of.LAST_WEIGHTS[g], last)
        if peephole is not None and arrays[peephole] is not None:
            weights = arrays[peephole].astype(np.float32) * np.float32(
                rules_of.scale_of_weights(node, peephole) if arrays[peephole].dtype == np.int8 else 1
            )
            total = total + weights * cells
        if norm is not None:
            centred = total - total.mean(axis=1, keepdims=True)
            deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-8))
            total = centred / deviation * norm + bias
        return function(total) if g == 2 else 1 / (1 + np.exp(-total))

    forget = gate(1, 10)
    enter = 1 - forget if rules_of.is_coupled(node) else gate(0, 9)
    cells[:] = cells * forget + enter * gate(2)
    clip = float(node.options["cell_clip"])
    if clip > 0:
        cells[:] = np.clip(cells, -clip, clip)
    result = gate(3, 11) * function(cells)
    if arrays[rules_of.PROJECTION] is not None:
        result = _product(node, arrays, rules_of.PROJECTION, result)
        bias, clip = arrays[rules_of.PROJECTION_BIAS], float(node.options["proj_clip"])
        result = result if bias is None else result + bias
        result = np.clip(result, -clip, clip) if clip > 0 else result
    return result
