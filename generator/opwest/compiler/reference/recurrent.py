# SPDX-License-Identifier: Apache-2.0
"""Layers with a state. The array of a state is changed in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.layers import quantised
from opwest.compiler.reference.registry import Arrays, interprets
from opwest.compiler.semantics import fixed_point
from opwest.compiler.semantics import recurrent as rules_of
from opwest.compiler.semantics.fixed_point import (
    Multiplier,
    Rounding,
    inverse_root,
    limits_of,
    one_quantization,
    round_shift,
    scaled,
)
from opwest.compiler.semantics.recurrent import (
    GATE_TANH,
    LstmNumbers,
    Normalisation,
    hybrid_scales,
    lstm_numbers,
    svdf_numbers,
    time_weights,
)
from opwest.compiler.semantics.tables import interpolated_sigmoid


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


def _times(value: Any, by: Multiplier | None, rounding: Rounding = Rounding.TWICE) -> Any:
    assert by is not None
    return scaled(value, by.fixed, by.shift, rounding)


def _clamped(value: Any) -> Any:
    return np.clip(value, -32768, 32767)


def _wrapped(value: Any) -> Any:
    return value.astype(np.int32).astype(np.int64)


class IntegerCell:
    """A layer; its functions return int64 arrays [batch, cells or results]."""

    def __init__(self, arrays: Arrays, numbers: LstmNumbers, starts: Any = None) -> None:
        """`starts`: what the sums of the gates start with, [2][gates]: of the data, of the last result."""
        self._arrays: list[Any] = [None if array is None else array.astype(np.int64) for array in arrays]
        self._numbers = numbers
        self._starts = self._made_starts() if starts is None else starts

    def _made_starts(self) -> list[list[Any]]:
        """Return the biases, without the products of the zero points."""
        found: list[list[Any]] = []
        for first, zero in zip((1, 5), self._numbers.zeros, strict=True):
            weights = self._arrays[first : first + 4]
            found.append([None if weight is None else -zero * weight.sum(axis=1) for weight in weights])
        for gate, norm in enumerate(self._numbers.norms):
            if norm is None and found[0][gate] is not None:
                found[0][gate] = found[0][gate] + self._arrays[12 + gate]
        return found

    def step(self, data: Any, last: Any, cells: Any) -> Any:
        """Return the next results; the cells are changed."""
        numbers = self._numbers
        x, h = data.astype(np.int64), last.astype(np.int64)
        c = cells.astype(np.int64)
        forget = self._gate(1, x, h, c, 1)
        enter = None if self._arrays[1] is None else self._gate(0, x, h, c, 0)
        new = self._gate(2, x, h, c)
        if numbers.products is not None:
            kept, added = (
                _clamped(_times(value, by))
                for value, by in zip((forget * c, enter * new), numbers.products, strict=True)
            )
        else:
            kept = round_shift(forget * c, 15)
            added = round_shift((32767 - forget if enter is None else enter) * new, 30 + numbers.power)
        c = _clamped(kept + added)
        if numbers.clip is not None:
            c = np.clip(c, -numbers.clip, numbers.clip)
        cells[:] = c
        product = self._gate(3, x, h, c, 2) * self._tanh(c)
        hidden = np.clip(_times(product, numbers.hidden) + numbers.hidden_zero, numbers.low, numbers.high)
        return hidden if numbers.projection is None else self._projected(hidden)

    def _gate(self, g: int, x: Any, h: Any, c: Any, peephole: int | None = None) -> Any:
        numbers, norm = self._numbers, self._numbers.norms[g]
        total = x @ self._arrays[1 + g].T + self._starts[0][g]
        first = _clamped(_times(total, numbers.data[g], numbers.rounding))
        second = _times(h @ self._arrays[5 + g].T + self._starts[1][g], numbers.last[g], numbers.rounding)
        found = _clamped(first + (_clamped(second) if numbers.is_micro else second))
        if peephole is not None and numbers.peepholes[peephole] is not None:
            found = _clamped(found + _times(self._arrays[9 + peephole] * c, numbers.peepholes[peephole]))
        if norm is not None:
            found = self._normalised(found, norm, self._arrays[20 + g], self._arrays[12 + g])
        if numbers.is_micro:
            return interpolated_sigmoid(found, GATE_TANH, g == 2)
        return fixed_point.tanh(found, 3) if g == 2 else fixed_point.logistic(found)

    def _tanh(self, cells: Any) -> Any:
        if self._numbers.is_micro:
            return interpolated_sigmoid(cells, self._numbers.tanh, True)
        return fixed_point.tanh(cells, 15 + self._numbers.power)

    def _normalised(self, values: Any, by: Normalisation, weights: Any, bias: Any) -> Any:
        """Return the layer normalisation. Source: portable_tensor_utils.cc, PortableApplyLayerNorm."""
        length = values.shape[1]
        mean = _quotient(values.sum(axis=1) * 1024, length)
        variance = _quotient((values * values).sum(axis=1) * ((1 << 20) // length) - mean * mean, 1 << 20)
        variance = np.where(variance < 1, by.guard, variance)
        fixed, places = (one[:, None] for one in inverse_root(variance))
        centred = scaled(1024 * values - mean[:, None], fixed, -places, Rounding.TWICE)
        product = _wrapped(centred * weights + bias)
        rounded = _quotient(np.where(product > 0, product + 512, product - 512), 1024)
        return _clamped(_times(rounded, by.by))

    def _projected(self, hidden: Any) -> Any:
        """Return the int8 results of a projection; its data have the zero point of the negated `hidden_zero`."""
        projection = self._numbers.projection
        assert projection is not None
        bias = 0 if self._arrays[17] is None else self._arrays[17]
        total = (hidden - self._numbers.hidden_zero) @ self._arrays[16].T + bias
        found = np.clip(_times(total, projection.by) + projection.zero, -128, 127)
        return np.clip(found, -projection.clip, projection.clip) if projection.clip > 0 else found


def _quotient(value: Any, by: int) -> Any:
    """Return a quotient that is rounded to zero, as in C."""
    return np.abs(value) // by * np.sign(value)


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
