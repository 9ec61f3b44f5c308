# SPDX-License-Identifier: Apache-2.0
"""Operations with states, whose arrays change in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.execution.registry import Arrays, executes
from opwest.compiler.graph.user import opaque_results
from opwest.compiler.ir.operations import Clamp, Sums
from opwest.compiler.ir.recurrent import Filter, FloatMemory, IntegerMemory, Memory
from opwest.compiler.ir.rows import UserCall
from opwest.compiler.reference.layers import quantised
from opwest.compiler.reference.recurrent import ACTIVATIONS, IntegerCell


@executes(Filter)
def svdf(operation: Filter, arrays: Arrays) -> Any:
    """The state holds the last products with the weights of the features, for each filter."""
    data, state = arrays
    filters, memory = operation.time.shape
    history = state.reshape(len(data), filters, memory)
    history[..., :-1] = history[..., 1:].copy()
    finish, hybrid = operation.finish, operation.hybrid
    if isinstance(finish, Clamp):
        if hybrid is None:
            history[..., -1] = data @ operation.feature.T
        else:
            rows, each = quantised(data, hybrid.is_asymmetric)
            sums = (rows @ operation.feature.T.astype(np.int64)).astype(np.float32)
            history[..., -1] = sums * (each * np.float32(hybrid.scale))[:, None]
        total = (history * operation.time).sum(axis=-1).reshape(len(data), -1, operation.rank).sum(axis=-1)
        total = total if operation.bias is None else total + operation.bias
        limits = finish.low, finish.high
        return total if limits == (None, None) else np.clip(total, *limits)
    assert operation.inner is not None and not isinstance(finish, Sums)
    zero, state_zero = operation.zeros
    sums = (data.astype(np.int64) - zero) @ operation.feature.T.astype(np.int64)
    history[..., -1] = operation.inner.apply(sums) + state_zero
    products = (history.astype(np.int64) - state_zero) * operation.time
    total = products.sum(axis=-1).reshape(len(data), -1, operation.rank).sum(axis=-1)
    total = total if operation.bias is None else total + operation.bias
    return finish.apply(total.astype(np.int32).astype(np.int64))  # the sums of the emitted C wrap


def _gates(operation: Memory) -> list[int]:
    """Return the numbers of the gates that exist: 0 is the input gate."""
    return [0, 1, 2, 3] if len(operation.weights) == 4 else [1, 2, 3]


def _sequence(operation: Memory, arrays: Arrays, step: Any) -> Any:
    """Return the results of all steps; `step` returns the next result and changes the cells."""
    data, last, cells = arrays
    moved = data if operation.is_time_major else np.swapaxes(data, 0, 1)
    last, cells = (one.reshape(moved.shape[1], -1) for one in (last, cells))
    results = []
    for one in moved:
        last[:] = step(one, last, cells)
        results.append(last.copy())
    found = np.stack(results)
    return found if operation.is_time_major else np.swapaxes(found, 0, 1)


@executes(FloatMemory)
def float_lstm(operation: FloatMemory, arrays: Arrays) -> Any:
    """float32 data; int8 weights if it is hybrid."""
    return _sequence(operation, arrays, lambda *given: _float_step(operation, *given))


def _float_step(operation: FloatMemory, data: Any, last: Any, cells: Any) -> Any:
    function = ACTIVATIONS[operation.activation]
    numbers = _gates(operation)
    length = data.shape[1]

    def product(weights: Any, rows: Any, scale: Any) -> Any:
        if operation.hybrid is None:
            return rows @ weights.T
        values, scales = quantised(rows, operation.hybrid.is_asymmetric)
        sums = (values @ weights.T.astype(np.int64)).astype(np.float32)
        return sums * (scales * np.float32(scale))[:, None]

    def gate(number: int) -> Any:
        place = numbers.index(number)
        weights, bias = operation.weights[place], operation.bias[place]
        scales = (0, 0) if operation.hybrid is None else operation.hybrid.scales[place]
        total = 0 if operation.norms is not None else bias
        total = total + product(weights[:, :length], data, scales[0])
        total = total + product(weights[:, length:], last, scales[1])
        if operation.peepholes is not None and number != 2:
            holes = [one for one in numbers if one != 2]
            total = total + operation.peepholes[holes.index(number)] * cells
        if operation.norms is not None:
            centred = total - total.mean(axis=1, keepdims=True)
            deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-8))
            total = centred / deviation * operation.norms[place] + bias
        return function(total) if number == 2 else 1 / (1 + np.exp(-total))

    forget = gate(1)
    enter = gate(0) if 0 in numbers else 1 - forget
    cells[:] = cells * forget + enter * gate(2)
    if operation.clip > 0:
        cells[:] = np.clip(cells, -operation.clip, operation.clip)
    result = gate(3) * function(cells)
    if operation.projection is not None:
        result = product(operation.projection, result, 0 if operation.hybrid is None else operation.hybrid.projection)
        result = result if operation.projection_bias is None else result + operation.projection_bias
        clip = operation.projection_clip
        result = np.clip(result, -clip, clip) if clip > 0 else result
    return result


@executes(IntegerMemory)
def integer_lstm(operation: IntegerMemory, arrays: Arrays) -> Any:
    """int8 or int16 data."""
    starts: list[list[Any]] = [[None] * 4, [None] * 4]
    for place, gate in enumerate(_gates(operation)):
        for number in range(2):
            starts[number][gate] = operation.starts[number][place].astype(np.int64)
    cell = IntegerCell(_tensors(operation, arrays[0].shape[-1]), operation.numbers, starts)
    return _sequence(operation, arrays, cell.step)


def _tensors(operation: IntegerMemory, length: int) -> list[Any]:
    """Return the arrays by the numbers of the operands of TFLite's operator."""
    found: list[Any] = [None] * 24
    gates = _gates(operation)
    for place, gate in enumerate(gates):
        weights = operation.weights[place]
        found[1 + gate], found[5 + gate] = weights[:, :length], weights[:, length:]
        if operation.norms is not None:
            found[20 + gate], found[12 + gate] = operation.norms[place], operation.bias[place]
    if operation.peepholes is not None:
        holes = [gate for gate in gates if gate != 2]
        for place, gate in enumerate(holes):
            found[(9, 10, 0, 11)[gate]] = operation.peepholes[place]
    if operation.projection is not None:
        less = operation.numbers.hidden_zero * operation.projection.sum(axis=1, dtype=np.int64)
        found[16], found[17] = operation.projection, operation.projection_bias + less
    return found


@executes(UserCall)
def user_call(operation: UserCall, arrays: Arrays) -> Any:
    """Arrays of options are no inputs of the operator."""
    by_value = dict(zip(operation.inputs, arrays, strict=True))
    given, states = [], []
    for argument, value in operation.tensors:
        if argument.is_read:
            given.append(by_value[value])
            if argument.direction == "inout":
                states.append(by_value[value])
    kinds = [(str(array.dtype), array.shape) for array in states]
    kinds += [(value.dtype, value.shape) for value in operation.results]
    found = opaque_results(operation.operator.name, given, kinds)
    for state, content in zip(states, found, strict=False):
        state[...] = content
    return found[len(states) :]
