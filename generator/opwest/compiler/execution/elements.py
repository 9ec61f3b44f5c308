# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: one function for each record of `ir/functions.py`, `ir/elements.py` and `ir/onnx.py`."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from opwest.compiler.execution.registry import Arrays, executes
from opwest.compiler.ir import elements
from opwest.compiler.ir import operations as onnx_ir
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.reference import elementwise as arithmetic
from opwest.compiler.reference import elementwise as conversion
from opwest.compiler.reference import elementwise as unary
from opwest.compiler.reference import onnx
from opwest.compiler.semantics import tables
from opwest.compiler.semantics.elementwise import LEFT_SHIFT
from opwest.compiler.semantics.fixed_point import Multiplier, Rounding, round_shift, scaled
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS


@executes(Elementwise)
def elementwise(operation: Elementwise, arrays: Arrays) -> Any:
    """Operands are broadcast to the shape of the result."""
    [result] = operation.results
    if operation.forbidden is not None:
        operand, value = operation.forbidden
        if (arrays[operand] == value).any():
            raise ValueError("a divisor is 0")
    found = np.asarray(value_of(operation.function, arrays, result.dtype))
    return np.broadcast_to(found, result.shape)


@singledispatch
def value_of(function: Any, arrays: Arrays, dtype: str) -> Any:
    """Return the results of a function of elements in a dtype."""
    raise AssertionError(f"no function for {type(function).__name__}")


def _times(values: Any, by: Multiplier) -> Any:
    return scaled(values, by.fixed, by.shift, Rounding.TWICE)


def _moved(arrays: Arrays, zeros: tuple[int, int]) -> tuple[Any, Any]:
    """Return two operands without their zero points."""
    one, other = (array.astype(np.int64) - zero for array, zero in zip(arrays, zeros, strict=True))
    return one, other


def _clamped(values: Any, low: float | None, high: float | None) -> Any:
    return values if (low, high) == (None, None) else np.clip(values, low, high)


def sum_of(function: elements.AddQuantised, one: Any, other: Any) -> Any:
    """Return the sum of two quantised operands."""
    numbers = function.numbers
    first, second = (
        _times(value << numbers.left_shift, by)
        for value, by in zip(_moved((one, other), numbers.zeros), numbers.multipliers, strict=True)
    )
    total = _times(first - second if function.subtract else first + second, numbers.result)
    return np.clip(total + numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.AddQuantised, arrays: Arrays, dtype: str) -> Any:
    return sum_of(function, *arrays)


@value_of.register
def _(function: elements.Arithmetic, arrays: Arrays, dtype: str) -> Any:
    one, other = arrays
    if function.operator == "/":
        found = one / other if dtype == "float32" else _quotient(one.astype(np.int64), other.astype(np.int64))
    else:
        found = {"+": np.add, "-": np.subtract, "*": np.multiply}[function.operator](one, other)
    limits = function.low, function.high
    if dtype == "float32":
        return _clamped(found, *limits)
    low, high = (None if limit is None else int(limit) for limit in limits)
    return _clamped(found.astype(dtype), low, high)


def _quotient(one: Any, other: Any) -> Any:
    """Return integers divided and rounded to zero."""
    return np.abs(one) // np.abs(other) * np.sign(one) * np.sign(other)


@value_of.register
def _(function: elements.Float, arrays: Arrays, dtype: str) -> Any:
    return FLOAT_FUNCTIONS[function.kind].of(arrays)


@value_of.register
def _(function: elements.Plain, arrays: Arrays, dtype: str) -> Any:
    kind = function.kind
    if len(arrays) == 1:
        return unary.plain(kind, arrays[0], function.alpha, function.approximate)
    return _PAIRS[kind](*arrays)


def _floor_divide(one: Any, other: Any) -> Any:
    if one.dtype == np.float32:
        return np.floor(one.astype(np.float64) / other)
    return one.astype(np.int64) // other


def _floor_modulo(one: Any, other: Any) -> Any:
    if one.dtype == np.float32:
        rest = np.fmod(one, other)
        return np.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)
    # -1 is a special divisor: numpy's rest of the least int64 is undefined.
    return one.astype(np.int64) % np.where(other == -1, 1, other).astype(np.int64)


def _power(one: Any, other: Any) -> Any:
    one, other = np.broadcast_arrays(one, other)
    if one.dtype == np.float32:
        return np.power(one.astype(np.float64), other.astype(np.float64))
    found = [pow(int(b) % 2**32, int(e), 2**32) if e >= 0 else 0 for b, e in zip(one.flat, other.flat, strict=True)]
    return np.asarray(found, np.uint64).astype(np.uint32).astype(np.int32).reshape(one.shape)


def _squared_difference(one: Any, other: Any) -> Any:
    return (one - other) * (one - other)


_PAIRS: dict[str, Any] = {
    "MINIMUM": lambda one, other: np.where(one < other, one, other),
    "MAXIMUM": lambda one, other: np.where(one > other, one, other),
    "FLOOR_DIV": _floor_divide,
    "FLOOR_MOD": _floor_modulo,
    "POW": _power,
    "SQUARED_DIFFERENCE": _squared_difference,
    "PRELU": lambda data, slope: np.where(data >= 0, data, data * slope),
}


@value_of.register
def _(function: elements.AddShifted, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    one, other = (round_shift(array, by) for array, by in zip(arrays, numbers.places, strict=True))
    return np.clip(one - other if function.subtract else one + other, numbers.low, numbers.high)


@value_of.register
def _(function: elements.Product, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    one, other = _moved(arrays, numbers.zeros)
    product = (one * other).astype(np.int32)
    return np.clip(_times(product, numbers.multiplier) + numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.HighProduct, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    high = (arrays[0].astype(np.int64) * arrays[1] + (1 << 14)) >> 15
    return np.clip(round_shift(high, 8) + numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.Quotient, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    one, other = np.broadcast_arrays(*_moved(arrays, numbers.zeros))
    found = arithmetic.quotient(np.where(other < 0, -one, one), np.abs(other), numbers.multiplier)
    return np.clip(found + numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.SquaredDifference, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    one, other = (
        _times(value << numbers.left_shift, by)
        for value, by in zip(_moved(arrays, numbers.zeros), numbers.multipliers, strict=True)
    )
    return np.clip(_times((one - other) ** 2, numbers.result) + numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.Prelu, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    data, slope = _moved(arrays, numbers.zeros)
    found = np.where(data >= 0, _times(data, numbers.positive), _times(data * slope, numbers.negative))
    return np.clip(found + numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.Lookup, arrays: Arrays, dtype: str) -> Any:
    [data] = arrays
    return function.table[data.astype(np.int64) - np.iinfo(data.dtype).min]


@value_of.register
def _(function: elements.Interpolated, arrays: Arrays, dtype: str) -> Any:
    return tables.interpolated(arrays[0], function.table)


@value_of.register
def _(function: elements.Sigmoid, arrays: Arrays, dtype: str) -> Any:
    return tables.interpolated_sigmoid(arrays[0], function.numbers, function.kind == "TANH")


@value_of.register
def _(function: elements.Root, arrays: Arrays, dtype: str) -> Any:
    return unary.root(arrays[0], function.source, function.target)


@value_of.register
def _(function: elements.Rescaled, arrays: Arrays, dtype: str) -> Any:
    return function.numbers.apply(arrays[0])


@value_of.register
def _(function: elements.Clamped, arrays: Arrays, dtype: str) -> Any:
    return np.clip(arrays[0], function.low, function.high)


@value_of.register
def _(function: elements.Quantised, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    return conversion.quantised(arrays[0], np.float32(numbers.scale), numbers.zero, numbers.low, numbers.high)


@value_of.register
def _(function: elements.QuantisedEach, arrays: Arrays, dtype: str) -> Any:
    data, scales, zeros = arrays
    return conversion.quantised(data, scales, zeros, function.low, function.high)


@value_of.register
def _(function: elements.Dequantised, arrays: Arrays, dtype: str) -> Any:
    return np.float32(function.scale) * (arrays[0].astype(np.int32) - function.zero).astype(np.float32)


@value_of.register
def _(function: elements.DequantisedEach, arrays: Arrays, dtype: str) -> Any:
    data, scales, zeros = arrays
    return scales * (data.astype(np.int64) - zeros).astype(np.float32)


@value_of.register
def _(function: elements.Cast, arrays: Arrays, dtype: str) -> Any:
    return conversion.converted(arrays[0], np.dtype(dtype))


_RELATIONS = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}


@value_of.register
def _(function: elements.Compared, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    if numbers is not None:
        arrays = [
            _times(value << LEFT_SHIFT, by)
            for value, by in zip(_moved(arrays, numbers.zeros), numbers.multipliers, strict=True)
        ]
    return _RELATIONS[function.operator](*arrays)


@value_of.register
def _(function: elements.Logic, arrays: Arrays, dtype: str) -> Any:
    return {"LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or, "LOGICAL_NOT": np.logical_not}[function.kind](
        *arrays
    )


@value_of.register
def _(function: elements.Selected, arrays: Arrays, dtype: str) -> Any:
    return np.where(*arrays)


@value_of.register
def _(function: onnx_ir.Lookup, arrays: Arrays, dtype: str) -> Any:
    # The table is in the order of the bytes.
    return np.asarray(function.table).astype(dtype)[arrays[0].view(np.uint8)]


@value_of.register
def _(function: onnx_ir.QuantizeEven, arrays: Arrays, dtype: str) -> Any:
    return onnx.quantised_even(arrays[0], function.scale, function.zero, function.low, function.high)
