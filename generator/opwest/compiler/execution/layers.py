# SPDX-License-Identifier: Apache-2.0
"""Layers with windows, matrix products, recurrent layers; rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.execution.run import FUNCTIONS, Arrays, executes
from opwest.compiler.graph.user import opaque_results
from opwest.compiler.ir import operations as ir
from opwest.compiler.reference import layers as reference
from opwest.compiler.reference import normalisation, recurrent
from opwest.compiler.reference.elementwise import dynamically_quantised, quantised_sum


def wide(data: Any, zero: int) -> Any:
    """Return data without the zero point: float32, or float64, which is exact for sums below 2**53."""
    return data if data.dtype == np.float32 else data.astype(np.float64) - zero


def finished(sums: Any, bias: Any, finish: ir.Finish, dtype: str) -> Any:
    """Return the results of a layer; `dtype` is that of its data. Sums of 8-bit data wrap to 32 bits."""
    if isinstance(finish, ir.Clamp):
        return reference.float_results(sums, bias, finish.low, finish.high)
    if isinstance(finish, ir.Sums):
        return reference.integer_sums(sums, bias, is_wide=False)
    return finish.apply(reference.integer_sums(sums, bias, is_wide=dtype == "int16"))


def _sums(operation: ir.Convolution, data: Any) -> Any:
    moved, weights = wide(data, operation.zero), wide(operation.weights, operation.weight_zero)
    window = operation.window
    is_single = (window.size, window.result, data.shape[1:3], operation.groups) == ((1, 1), (1, 1), (1, 1), 1)
    if is_single and not window.is_padded((1, 1)):
        return moved.reshape(-1, weights.shape[3]) @ weights.reshape(len(weights), -1).T
    return reference.grouped_sums(moved, weights, window)


@executes(ir.Convolution)
def convolution(operation: ir.Convolution, arrays: Arrays) -> Any:
    """Sums, then the end of the layer."""
    [data] = arrays
    return finished(_sums(operation, data), operation.bias, operation.finish, str(data.dtype))


@executes(ir.ConvolutionSum)
def convolution_sum(operation: ir.ConvolutionSum, arrays: Arrays) -> Any:
    """The results of the convolution are one operand of the sum."""
    data, other = arrays
    result = operation.results[0]
    part = finished(_sums(operation, data), operation.bias, operation.finish, str(data.dtype))
    part = part.astype(result.dtype).reshape(result.shape)
    operands = (other, part) if operation.place else (part, other)
    return quantised_sum(operation.function.numbers, *operands, is_difference=operation.function.subtract)


@executes(ir.Depthwise)
def depthwise(operation: ir.Depthwise, arrays: Arrays) -> Any:
    """Result o reads channel o // (o_total / c)."""
    [data] = arrays
    sums = reference.depthwise_sums(
        wide(data, operation.zero), wide(operation.weights, operation.weight_zero), operation.window
    )
    return finished(sums, operation.bias, operation.finish, str(data.dtype))


@executes(ir.MatrixProduct)
def product(operation: ir.MatrixProduct, arrays: Arrays) -> Any:
    """Of the last two dimensions. Sums of products of int16 do not fit in float64."""
    one, other, *rest = arrays
    dtype = str(one.dtype)
    if one.dtype != np.float32:
        one, other = one.astype(np.int64) - operation.zeros[0], other.astype(np.int64) - operation.zeros[1]
    one = np.swapaxes(one, -1, -2) if operation.swaps[0] else one
    other = np.swapaxes(other, -1, -2) if operation.swaps[1] else other
    return finished(one @ other, rest[0] if rest else None, operation.finish, dtype)


def _window_sums(
    operation: ir.DirectConvolution | ir.HybridConvolution, data: Any, weights: Any, *, is_depthwise: bool
) -> Any:
    if operation.is_transposed:
        return reference.transposed_sums(data, weights, operation.window)
    return (reference.depthwise_sums if is_depthwise else reference.grouped_sums)(data, weights, operation.window)


@executes(ir.DirectConvolution)
def direct(operation: ir.DirectConvolution, arrays: Arrays) -> Any:
    """With weights that are data."""
    data, weights, *rest = arrays
    dtype, bias = str(data.dtype), rest[0].reshape(-1) if rest else None
    moved, by = wide(data, operation.zeros[0]), wide(weights, operation.zeros[1])
    is_depthwise = operation.groups == 0
    sums = _window_sums(operation, moved, by[0] if is_depthwise else by, is_depthwise=is_depthwise)
    return finished(sums, bias, operation.finish, dtype)


@executes(ir.QuantiseRows)
def rows(operation: ir.QuantiseRows, arrays: Arrays) -> Any:
    """Each row has a scale, and perhaps a zero point."""
    [data] = arrays
    is_asymmetric = len(operation.results) == 3
    centred, scales, zeros = reference.quantised(data.reshape(len(data), -1), is_asymmetric)
    return (centred + zeros[:, None], scales, zeros)[: len(operation.results)]


def _centred(arrays: Arrays) -> tuple[Any, Any]:
    """Return rows without their zero points as float64, and their scales."""
    data, scales, *zeros = arrays
    centred = data.astype(np.float64)
    if zeros:
        centred = centred - zeros[0].reshape(-1, *(1,) * (data.ndim - 1))
    return centred, scales


@executes(ir.HybridProduct)
def hybrid_product(operation: ir.HybridProduct, arrays: Arrays) -> Any:
    """Products of rows and matrices [...,n,k]."""
    data, scales = _centred(arrays)
    shape = operation.data
    sums = data.reshape(shape) @ np.swapaxes(operation.weights.astype(np.float64), -1, -2)
    return sums.astype(np.float32) * (scales.reshape(*shape[:-1], 1) * np.float32(operation.scale))


@executes(ir.HybridConvolution)
def hybrid_convolution(operation: ir.HybridConvolution, arrays: Arrays) -> Any:
    """Sums times the scale of the row and that of the weights."""
    data, scales = _centred(arrays)
    sums = _window_sums(operation, data, operation.weights.astype(np.float64), is_depthwise=operation.is_depthwise)
    each = scales[:, None] * np.asarray(operation.scales, np.float32)
    return finished(sums.astype(np.float32) * each[:, None, None], operation.bias, operation.finish, "float32")


@executes(ir.Filter)
def svdf(operation: ir.Filter, arrays: Arrays) -> Any:
    """The state holds the last products with the weights of the features, for each filter."""
    data, state = arrays
    history = recurrent.shifted_history(state, len(data), operation.time.shape)
    finish, hybrid = operation.finish, operation.hybrid
    if isinstance(finish, ir.Clamp):
        if hybrid is None:
            history[..., -1] = data @ operation.feature.T
        else:
            history[..., -1] = recurrent.quantised_product(data, operation.feature, hybrid.scale, hybrid.is_asymmetric)
        total = recurrent.filtered(history, operation.time, operation.bias, operation.rank)
        return reference.clamped(total, finish.low, finish.high)
    assert operation.inner is not None and not isinstance(finish, ir.Sums)
    weights = operation.feature, operation.time, operation.bias
    return recurrent.integer_svdf(data, *weights, history, operation.rank, operation.zeros, operation.inner, finish)


def _gates(operation: ir.Memory) -> list[int]:
    """Return the numbers of the gates that exist: 0 is the input gate."""
    return [0, 1, 2, 3] if len(operation.weights) == 4 else [1, 2, 3]


@executes(ir.FloatMemory)
def float_lstm(operation: ir.FloatMemory, arrays: Arrays) -> Any:
    """float32 data; int8 weights if it is hybrid."""
    tensors = _tensors(operation, arrays[0].shape[-1])
    scales, is_asymmetric = {}, False
    if operation.hybrid is not None:
        is_asymmetric = operation.hybrid.is_asymmetric
        scales[16] = operation.hybrid.projection
        for place, gate in enumerate(_gates(operation)):
            scales[1 + gate], scales[5 + gate] = operation.hybrid.scales[place]
    cell = recurrent.FloatCell(
        tensors, operation.activation, scales, is_asymmetric, operation.clip, operation.projection_clip
    )
    return recurrent.sequence(*arrays, is_time_major=operation.is_time_major, step=cell.step)


@executes(ir.IntegerMemory)
def integer_lstm(operation: ir.IntegerMemory, arrays: Arrays) -> Any:
    """int8 or int16 data."""
    starts: list[list[Any]] = [[None] * 4, [None] * 4]
    for place, gate in enumerate(_gates(operation)):
        for number in range(2):
            starts[number][gate] = operation.starts[number][place].astype(np.int64)
    tensors = _tensors(operation, arrays[0].shape[-1])
    if operation.projection is not None:
        tensors[17] = tensors[17] + operation.numbers.hidden_zero * operation.projection.sum(axis=1, dtype=np.int64)
    cell = recurrent.IntegerCell(tensors, operation.numbers, starts)
    return recurrent.sequence(*arrays, is_time_major=operation.is_time_major, step=cell.step)


def _tensors(operation: ir.Memory, length: int) -> list[Any]:
    """Return the arrays by the numbers of the operands of TFLite's operator."""
    tensors: list[Any] = [None] * 24
    gates = _gates(operation)
    for place, gate in enumerate(gates):
        weights = operation.weights[place]
        tensors[1 + gate], tensors[5 + gate] = weights[:, :length], weights[:, length:]
        if operation.bias is not None:
            tensors[12 + gate] = operation.bias[place]
        if operation.norms is not None:
            tensors[20 + gate] = operation.norms[place]
    if operation.peepholes is not None:
        for place, gate in enumerate(gate for gate in gates if gate != 2):
            tensors[(9, 10, 0, 11)[gate]] = operation.peepholes[place]
    tensors[16], tensors[17] = operation.projection, operation.projection_bias
    return tensors


@executes(ir.UserCall)
def user_call(operation: ir.UserCall, arrays: Arrays) -> Any:
    """Arrays of options are no inputs of the operator."""
    by_value = dict(zip(operation.inputs, arrays, strict=True))
    given, states = [], []
    for argument, value in operation.tensors:
        if argument.is_read:
            given.append(by_value[value])
            if argument.direction == "inout":
                states.append(by_value[value])
    results = [(value.dtype, value.shape) for value in operation.results]
    return opaque_results(operation.operator.name, given, states, results)


FUNCTIONS.update(
    {
        ir.Pool: lambda op, arrays: reference.pooled(op.kind, arrays[0], op.window, op.low, op.high),
        ir.DynamicQuantize: lambda op, arrays: dynamically_quantised(arrays[0]),
        ir.SoftmaxFloat: lambda op, arrays: normalisation.float_softmax(arrays[0], op.beta),
        ir.SoftmaxTable: lambda op, arrays: normalisation.softmax_by_table(arrays[0], op.powers, op.results[0].dtype),
        ir.Softmax16: lambda op, arrays: normalisation.softmax16(arrays[0], op.numbers),
        ir.LogSoftmaxTable: lambda op, arrays: normalisation.log_softmax_by_table(
            arrays[0], op.numbers, op.results[0].dtype
        ),
        ir.LogSoftmaxFloat: lambda op, arrays: normalisation.float_log_softmax(arrays[0]),
        ir.UnitLength: lambda op, arrays: normalisation.unit_length(arrays[0], op.zero),
        ir.Reduce: lambda op, arrays: normalisation.reduced(
            op.kind, arrays[0], op.axes, op.zero, op.finish, op.is_wide
        ),
        ir.Position: lambda op, arrays: normalisation.position_of(arrays[0], op.axis, is_greatest=op.is_greatest),
        ir.Greatest: lambda op, arrays: normalisation.greatest_of(arrays[0], op.count),
        ir.RunningSum: lambda op, arrays: normalisation.running_sums(
            arrays[0], op.axis, op.is_exclusive, op.is_reverse, op.zero, op.finish
        ),
    }
)
