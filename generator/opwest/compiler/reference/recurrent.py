# SPDX-License-Identifier: Apache-2.0
"""Layers with a state. The array of a state is changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.elementwise import UNARY_FUNCTIONS
from opwest.compiler.reference.layers import clamped, quantised
from opwest.compiler.reference.run import Arrays, interprets
from opwest.compiler.semantics import fixed_point
from opwest.compiler.semantics import recurrent as rules_of
from opwest.compiler.semantics.fixed_point import saturated
from opwest.compiler.semantics.tables import interpolated_sigmoid


@interprets("SVDF")
def svdf(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The state holds the last products with the weights of the features, for each filter."""
    data, feature, time, bias, state = arrays
    history, rank = shifted_history(state, len(data), time.shape), int(node.options["rank"])
    if data.dtype == np.float32:
        scales = rules_of.hybrid_scales(node)
        if scales is None:
            history[..., -1] = data @ feature.T
        else:
            is_asymmetric = bool(node.options["asymmetric_quantize_inputs"])
            history[..., -1] = quantised_product(data, feature, scales[0], is_asymmetric)
            time = rules_of.time_weights(time, scales[1])
        total = filtered(history, time, bias, rank)
        return clamped(total, *fixed_point.limits_of(node.options["fused_activation_function"]))
    zeros = fixed_point.one_quantization(node.input(0)).zero, fixed_point.one_quantization(node.input(4)).zero
    return integer_svdf(data, feature, time, bias, history, rank, zeros, *rules_of.svdf_numbers(node))


def shifted_history(state: Any, batch: int, shape: tuple[int, ...]) -> Any:
    """Return a state as [batch,filters,memory], without its oldest products; the last ones are to be set."""
    history = state.reshape(batch, *shape)
    history[..., :-1] = history[..., 1:].copy()
    return history


def filtered(history: Any, time: Any, bias: Any, rank: int) -> Any:
    """Return the sums of a history [batch,filters,memory] times the weights of the times: [batch,filters / rank]."""
    total = (history * time).sum(axis=-1).reshape(len(history), -1, rank).sum(axis=-1)
    return total if bias is None else total + bias


def integer_svdf(
    data: Any,
    feature: Any,
    time: Any,
    bias: Any,
    history: Any,
    rank: int,
    zeros: tuple[int, int],
    inner: fixed_point.Requantisation,
    outer: fixed_point.Requantisation,
) -> Any:
    """Return the results of int8 data, and set the last products of the history."""
    sums = (data.astype(np.int64) - zeros[0]) @ feature.T.astype(np.int64)
    history[..., -1] = inner.apply(sums) + zeros[1]
    total = filtered(history.astype(np.int64) - zeros[1], time, bias, rank)
    return outer.apply(fixed_point.wrapped(total))  # the sums have 32 bits


def quantised_product(data: Any, weights: Any, scale: float, is_asymmetric: bool) -> Any:
    """Return the products of float32 rows, which are quantised, with int8 weights [results,length]."""
    rows, scales, _ = quantised(data, is_asymmetric)
    sums = (rows @ weights.T.astype(np.int64)).astype(np.float32)
    return sums * (scales * np.float32(scale))[:, None]


class IntegerCell:
    """A layer; its functions return int64 arrays [batch, cells or results]."""

    def __init__(self, arrays: Arrays, numbers: rules_of.LstmNumbers, starts: Any = None) -> None:
        """`starts`: what the sums of the gates start with, [2][gates]: of the data, of the last result."""
        self._arrays: list[Any] = [None if array is None else array.astype(np.int64) for array in arrays]
        self._numbers = numbers
        self._starts = self._made_starts() if starts is None else starts

    def _made_starts(self) -> list[list[Any]]:
        """Return the biases, without the products of the zero points."""
        starts: list[list[Any]] = []
        for first, zero in zip((1, 5), self._numbers.zeros, strict=True):
            weights = self._arrays[first : first + 4]
            starts.append([None if weight is None else -zero * weight.sum(axis=1) for weight in weights])
        for gate, norm in enumerate(self._numbers.norms):
            if norm is None and starts[0][gate] is not None:
                starts[0][gate] = starts[0][gate] + self._arrays[12 + gate]
        return starts

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
                saturated(by.times(value), 16)
                for value, by in zip((forget * c, enter * new), numbers.products, strict=True)
            )
        else:
            kept = fixed_point.round_shift(forget * c, 15)
            added = fixed_point.round_shift((32767 - forget if enter is None else enter) * new, 30 + numbers.power)
        c = saturated(kept + added, 16)
        if numbers.clip is not None:
            c = np.clip(c, -numbers.clip, numbers.clip)
        cells[:] = c
        product = self._gate(3, x, h, c, 2) * self._tanh(c)
        hidden = np.clip(numbers.hidden.times(product) + numbers.hidden_zero, numbers.low, numbers.high)
        return hidden if numbers.projection is None else self._projected(hidden)

    def _gate(self, g: int, x: Any, h: Any, c: Any, peephole: int | None = None) -> Any:
        numbers, norm = self._numbers, self._numbers.norms[g]
        data, last = numbers.data[g], numbers.last[g]
        assert data is not None and last is not None
        first = saturated(data.times(x @ self._arrays[1 + g].T + self._starts[0][g], numbers.rounding), 16)
        second = last.times(h @ self._arrays[5 + g].T + self._starts[1][g], numbers.rounding)
        values = saturated(first + (saturated(second, 16) if numbers.is_micro else second), 16)
        by = None if peephole is None else numbers.peepholes[peephole]
        if by is not None and peephole is not None:
            values = saturated(values + by.times(self._arrays[9 + peephole] * c), 16)
        if norm is not None:
            values = self._normalised(values, norm, self._arrays[20 + g], self._arrays[12 + g])
        if numbers.is_micro:
            return interpolated_sigmoid(values, rules_of.GATE_TANH, g == 2)
        return fixed_point.tanh(values, 3) if g == 2 else fixed_point.logistic(values)

    def _tanh(self, cells: Any) -> Any:
        if self._numbers.is_micro:
            return interpolated_sigmoid(cells, self._numbers.tanh, True)
        return fixed_point.tanh(cells, 15 + self._numbers.power)

    def _normalised(self, values: Any, by: rules_of.Normalisation, weights: Any, bias: Any) -> Any:
        """Return the layer normalisation. Source: portable_tensor_utils.cc, PortableApplyLayerNorm."""
        length = values.shape[1]
        mean = _quotient(values.sum(axis=1) * 1024, length)
        variance = _quotient((values * values).sum(axis=1) * ((1 << 20) // length) - mean * mean, 1 << 20)
        variance = np.where(variance < 1, by.guard, variance)
        fixed, places = (array[:, None] for array in fixed_point.inverse_root(variance))
        centred = fixed_point.scaled(1024 * values - mean[:, None], fixed, -places, fixed_point.Rounding.TWICE)
        product = fixed_point.wrapped(centred * weights + bias)
        rounded = _quotient(np.where(product > 0, product + 512, product - 512), 1024)
        return saturated(by.by.times(rounded), 16)

    def _projected(self, hidden: Any) -> Any:
        """Return the int8 results of a projection; its data have the zero point of the negated `hidden_zero`."""
        projection = self._numbers.projection
        assert projection is not None
        bias = 0 if self._arrays[17] is None else self._arrays[17]
        total = (hidden - self._numbers.hidden_zero) @ self._arrays[16].T + bias
        results = np.clip(projection.by.times(total) + projection.zero, -128, 127)
        return np.clip(results, -projection.clip, projection.clip) if projection.clip > 0 else results


def _quotient(value: Any, by: int) -> Any:
    """Return a quotient that is rounded to zero, as in C."""
    return np.abs(value) // by * np.sign(value)


@interprets("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One step of all batches after another."""
    arrays = [*arrays, *[None] * (24 - len(arrays))]
    data, last, cells = arrays[0], arrays[rules_of.LAST], arrays[rules_of.CELLS]
    is_float = data.dtype == np.float32
    cell = _float_cell(node, arrays) if is_float else IntegerCell(arrays, rules_of.lstm_numbers(node))
    return sequence(data, last, cells, is_time_major=bool(node.options["time_major"]), step=cell.step)


def sequence(data: Any, last: Any, cells: Any, *, is_time_major: bool, step: Callable[[Any, Any, Any], Any]) -> Any:
    """Return the results of all steps; `step` returns the next result and changes the cells."""
    moved = data if is_time_major else np.swapaxes(data, 0, 1)
    last, cells = (state.reshape(moved.shape[1], -1) for state in (last, cells))
    results = []
    for rows in moved:
        last[:] = step(rows, last, cells)
        results.append(last.copy())
    stacked = np.stack(results)
    return stacked if is_time_major else np.swapaxes(stacked, 0, 1)


def _float_cell(node: Node, arrays: Sequence[Any]) -> FloatCell:
    options, tensors = node.options, list(arrays)
    weights = (*rules_of.DATA_WEIGHTS, *rules_of.LAST_WEIGHTS, *rules_of.PEEPHOLES, rules_of.PROJECTION)
    is_int8 = [i for i in weights if tensors[i] is not None and tensors[i].dtype == np.int8]
    scales = {i: rules_of.scale_of_weights(node, i) for i in is_int8}
    for i in rules_of.PEEPHOLES:
        if i in scales:
            tensors[i] = tensors[i].astype(np.float32) * np.float32(scales[i])
    return FloatCell(
        tensors,
        str(options["fused_activation_function"]),
        scales,
        bool(options["asymmetric_quantize_inputs"]),
        float(options["cell_clip"]),
        float(options["proj_clip"]),
    )


class FloatCell:
    """A layer with float32 data; its functions return float32 arrays [batch, cells or results]."""

    def __init__(
        self,
        arrays: Arrays,
        activation: str,
        scales: Mapping[int, float],
        is_asymmetric: bool,
        clip: float,
        projection_clip: float,
    ) -> None:
        """`scales`: of int8 weights, by the number of the operand."""
        self._arrays, self._scales, self._is_asymmetric = arrays, scales, is_asymmetric
        self._function = UNARY_FUNCTIONS[activation]
        self._clip, self._projection_clip = clip, projection_clip

    def step(self, data: Any, last: Any, cells: Any) -> Any:
        """Return the next results; the cells are changed."""
        forget = self._gate(1, data, last, cells, 10)
        enter = 1 - forget if self._arrays[1] is None else self._gate(0, data, last, cells, 9)
        cells[:] = cells * forget + enter * self._gate(2, data, last, cells)
        if self._clip > 0:
            cells[:] = np.clip(cells, -self._clip, self._clip)
        result = self._gate(3, data, last, cells, 11) * self._function(cells)
        if self._arrays[rules_of.PROJECTION] is not None:
            bias, clip = self._arrays[rules_of.PROJECTION_BIAS], self._projection_clip
            result = self._product(rules_of.PROJECTION, result)
            result = result if bias is None else result + bias
            result = np.clip(result, -clip, clip) if clip > 0 else result
        return result

    def _product(self, number: int, data: Any) -> Any:
        """Return the products of rows with weights, which are float32 or int8."""
        weights = self._arrays[number]
        if weights.dtype == np.float32:
            return data @ weights.T
        return quantised_product(data, weights, self._scales[number], self._is_asymmetric)

    def _gate(self, g: int, data: Any, last: Any, cells: Any, peephole: int | None = None) -> Any:
        norm, bias = self._arrays[rules_of.NORMS[g]], self._arrays[rules_of.BIASES[g]]
        total = 0 if norm is not None else bias
        total = total + self._product(rules_of.DATA_WEIGHTS[g], data)
        total = total + self._product(rules_of.LAST_WEIGHTS[g], last)
        if peephole is not None and self._arrays[peephole] is not None:
            total = total + self._arrays[peephole] * cells
        if norm is not None:
            centred = total - total.mean(axis=1, keepdims=True)
            deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-8))
            total = centred / deviation * norm + bias
        return self._function(total) if g == 2 else 1 / (1 + np.exp(-total))
