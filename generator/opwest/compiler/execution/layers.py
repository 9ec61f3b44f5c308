# SPDX-License-Identifier: Apache-2.0
"""Layers with windows, and matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.execution.elements import sum_of
from opwest.compiler.execution.registry import Arrays, executes
from opwest.compiler.graph.user import opaque_results
from opwest.compiler.ir.operations import (
    Clamp,
    Convolution,
    ConvolutionSum,
    Depthwise,
    DirectConvolution,
    DynamicQuantize,
    Filter,
    Finish,
    FloatMemory,
    HybridConvolution,
    HybridProduct,
    IntegerMemory,
    MatrixProduct,
    Memory,
    Pool,
    QuantiseRows,
    Sums,
    UserCall,
)
from opwest.compiler.reference.layers import patches, quantised
from opwest.compiler.reference.onnx import dynamically_quantised
from opwest.compiler.reference.recurrent import ACTIVATIONS, IntegerCell
from opwest.compiler.semantics.windows import Window


def wide(data: Any, zero: int) -> Any:
    """Return data without the zero point: float32, or float64, which is exact for sums below 2**53."""
    return data if data.dtype == np.float32 else data.astype(np.float64) - zero


def finished(sums: Any, bias: Any, finish: Finish, dtype: str) -> Any:
    """Return the results of a layer; `dtype` is that of its data. Sums of 8-bit data wrap to 32 bits."""
    if isinstance(finish, Clamp):
        total = sums.astype(np.float32) + (np.float32(0) if bias is None else bias)
        limits = finish.low, finish.high
        return total if limits == (None, None) else np.clip(total, *limits)
    total = np.rint(sums).astype(np.int64) + (0 if bias is None else bias.astype(np.int64))
    if isinstance(finish, Sums) or dtype != "int16":
        total = total.astype(np.int32)
    return total if isinstance(finish, Sums) else finish.apply(total)


def grouped(data: Any, weights: Any, window: Window, groups: int) -> Any:
    """Return the sums of windows of [n,h,w,c] with weights [o,kh,kw,c / groups]."""
    taken = patches(data, window, 0)
    inner, results = weights.shape[3], len(weights) // groups
    parts = []
    for group in range(groups):
        some = weights[group * results : (group + 1) * results].reshape(results, -1)
        part = taken[..., group * inner : (group + 1) * inner]
        parts.append(part.reshape(*part.shape[:3], -1) @ some.T)
    return parts[0] if groups == 1 else np.concatenate(parts, axis=-1)


def _sums(operation: Convolution, data: Any) -> Any:
    moved, weights = wide(data, operation.zero), wide(operation.weights, operation.weight_zero)
    window = operation.window
    is_single = (window.size, window.result, data.shape[1:3], operation.groups) == ((1, 1), (1, 1), (1, 1), 1)
    if is_single and not window.is_padded((1, 1)):
        return moved.reshape(-1, weights.shape[3]) @ weights.reshape(len(weights), -1).T
    return grouped(moved, weights, operation.window, operation.groups)


@executes(Convolution)
def convolution(operation: Convolution, arrays: Arrays) -> Any:
    """Sums, then the end of the layer."""
    [data] = arrays
    return finished(_sums(operation, data), operation.bias, operation.finish, str(data.dtype))


@executes(ConvolutionSum)
def convolution_sum(operation: ConvolutionSum, arrays: Arrays) -> Any:
    """The results of the convolution are one operand of the sum."""
    data, other = arrays
    result = operation.results[0]
    part = finished(_sums(operation, data), operation.bias, operation.finish, str(data.dtype))
    part = part.astype(result.dtype).reshape(result.shape)
    return sum_of(operation.function, *((other, part) if operation.place else (part, other)))


@executes(Depthwise)
def depthwise(operation: Depthwise, arrays: Arrays) -> Any:
    """Result o reads channel o // (o_total / c)."""
    [data] = arrays
    weights = wide(operation.weights, operation.weight_zero)
    taken = patches(wide(data, operation.zero), operation.window, 0)
    taken = np.repeat(taken, weights.shape[2] // data.shape[3], axis=-1)
    sums = np.einsum("nyxhwc,hwc->nyxc", taken, weights)
    return finished(sums, operation.bias, operation.finish, str(data.dtype))


@executes(Pool)
def pool(operation: Pool, arrays: Arrays) -> Any:
    """Elements of the padding do not count."""
    [data] = arrays
    window, is_float = operation.window, data.dtype == np.float32
    if operation.kind == "maximum":
        least = np.finfo(np.float32).min if is_float else -(1 << 40)
        found = patches(data if is_float else data.astype(np.int64), window, least).max(axis=(3, 4))
    else:
        counts = patches(np.ones((1, *data.shape[1:3], 1), np.int64), window, 0).sum(axis=(3, 4))
        taken = patches(data if is_float else data.astype(np.int64), window, 0)
        if operation.kind == "l2":
            found = np.sqrt((taken**2).sum(axis=(3, 4)) / counts.astype(np.float32))
        elif is_float:
            found = taken.sum(axis=(3, 4)) / counts.astype(np.float32)
        else:
            sums = taken.sum(axis=(3, 4))
            half = counts // 2
            found = np.where(sums > 0, (sums + half) // counts, -((half - sums) // counts))
    limits = operation.low, operation.high
    return found if limits == (None, None) else np.clip(found, *limits)


@executes(MatrixProduct)
def product(operation: MatrixProduct, arrays: Arrays) -> Any:
    """Of the last two dimensions. Sums of products of int16 do not fit in float64."""
    one, other, *rest = arrays
    dtype = str(one.dtype)
    if one.dtype != np.float32:
        one, other = one.astype(np.int64) - operation.zeros[0], other.astype(np.int64) - operation.zeros[1]
    one = np.swapaxes(one, -1, -2) if operation.swaps[0] else one
    other = np.swapaxes(other, -1, -2) if operation.swaps[1] else other
    return finished(one @ other, rest[0] if rest else None, operation.finish, dtype)


@executes(DirectConvolution)
def direct(operation: DirectConvolution, arrays: Arrays) -> Any:
    """With weights that are data."""
    data, weights, *rest = arrays
    dtype, bias = str(data.dtype), rest[0].reshape(-1) if rest else None
    moved, by = wide(data, operation.zeros[0]), wide(weights, operation.zeros[1])
    if operation.is_transposed:
        sums = transposed(moved, by, operation.window)
    elif operation.groups == 0:
        taken = np.repeat(patches(moved, operation.window, 0), by.shape[3] // data.shape[3], axis=-1)
        sums = np.einsum("nyxhwc,hwc->nyxc", taken, by[0])
    else:
        sums = grouped(moved, by, operation.window, operation.groups)
    return finished(sums, bias, operation.finish, dtype)


def transposed(data: Any, weights: Any, window: Window) -> Any:
    """Return the sums of a transposed convolution: the window is that from the result to the data."""
    (top, left), (rows, columns), (sy, sx) = window.before, window.result, window.stride
    n, height, width, _ = data.shape
    added = np.einsum("nyxc,ohwc->nyxhwo", data, weights)
    sums = np.zeros((n, rows, columns, len(weights)), data.dtype)
    for y, x, ky, kx in np.ndindex(height, width, *window.size):
        oy, ox = y * sy - top + ky, x * sx - left + kx
        if 0 <= oy < rows and 0 <= ox < columns:
            sums[:, oy, ox] += added[:, y, x, ky, kx]
    return sums


@executes(DynamicQuantize)
def dynamic(operation: DynamicQuantize, arrays: Arrays) -> Any:
    """Integers without the zero point, and the scale."""
    return dynamically_quantised(arrays[0])


@executes(QuantiseRows)
def rows(operation: QuantiseRows, arrays: Arrays) -> Any:
    """Each row has a scale, and perhaps a zero point."""
    [data] = arrays
    is_asymmetric = len(operation.results) == 3
    moved, scales = quantised(data.reshape(len(data), -1), is_asymmetric)
    if not is_asymmetric:
        return moved, scales
    # The rule returns differences from the zero point, which is that of the value 0.
    zeros = np.array([_zero_of(row, scale) for row, scale in zip(data.reshape(len(data), -1), scales, strict=True)])
    return moved + zeros[:, None], scales, zeros


def _zero_of(row: Any, scale: Any) -> int:
    """Return the zero point of a row. Source: TFLite's AsymmetricQuantizeFloats, in float64."""
    low, high = min(0.0, float(row.min())), max(0.0, float(row.max()))
    if low == high:
        return 0
    step = (high - low) / 255.0
    from_low, from_high = -128.0 - low / step, 127.0 - high / step
    zero = from_low if 128.0 + abs(low / step) < 127.0 + abs(high / step) else from_high
    return int(np.clip(np.floor(abs(zero) + 0.5) * np.sign(zero), -128, 127))


def _centred(arrays: Arrays) -> tuple[Any, Any]:
    """Return rows without their zero points as float64, and their scales."""
    data, scales, *zeros = arrays
    centred = data.astype(np.float64)
    if zeros:
        centred = centred - zeros[0].reshape(-1, *(1,) * (data.ndim - 1))
    return centred, scales


@executes(HybridProduct)
def hybrid_product(operation: HybridProduct, arrays: Arrays) -> Any:
    """Products of rows and matrices [...,n,k]."""
    data, scales = _centred(arrays)
    shape = operation.data
    sums = data.reshape(shape) @ np.swapaxes(operation.weights.astype(np.float64), -1, -2)
    return sums.astype(np.float32) * (scales.reshape(*shape[:-1], 1) * np.float32(operation.scale))


@executes(HybridConvolution)
def hybrid_convolution(operation: HybridConvolution, arrays: Arrays) -> Any:
    """Sums times the scale of the row and that of the weights."""
    data, scales = _centred(arrays)
    weights = operation.weights.astype(np.float64)
    if operation.is_depthwise:
        taken = np.repeat(patches(data, operation.window, 0), weights.shape[2] // data.shape[3], axis=-1)
        sums = np.einsum("nyxhwc,hwc->nyxc", taken, weights)
    elif operation.is_transposed:
        sums = transposed(data, weights, operation.window)
    else:
        sums = grouped(data, weights, operation.window, operation.groups)
    each = scales[:, None] * np.asarray(operation.scales, np.float32)
    return finished(sums.astype(np.float32) * each[:, None, None], operation.bias, operation.finish, "float32")


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
