# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: one for each class of `ir/elements.py`, and those of `ir/operations.py` from ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.execution.registry import Arrays, executes
from opwest.compiler.ir import elements
from opwest.compiler.ir import operations as onnx_ir
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.reference import elementwise as reference
from opwest.compiler.reference import onnx
from opwest.compiler.semantics import tables
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS


@executes(Elementwise)
def elementwise(operation: Elementwise, arrays: Arrays) -> Any:
    """Operands are broadcast to the shape of the result."""
    [result] = operation.results
    if operation.forbidden is not None:
        operand, value = operation.forbidden
        if (arrays[operand] == value).any():
            raise ValueError("a divisor is 0")
    function = operation.function
    values = np.asarray(_VALUES[type(function)](function, arrays, result.dtype))
    return np.broadcast_to(values, result.shape)


def _plain(function: elements.Plain, arrays: Arrays, dtype: str) -> Any:
    if len(arrays) == 1:
        return reference.plain(function.kind, arrays[0], function.alpha, function.approximate)
    return reference.PAIRS[function.kind](*arrays)


def _table(function: elements.Lookup, arrays: Arrays, dtype: str) -> Any:
    return function.table[arrays[0].astype(np.int64) - np.iinfo(arrays[0].dtype).min]


def _byte_table(function: onnx_ir.Lookup, arrays: Arrays, dtype: str) -> Any:
    # The table is in the order of the bytes.
    return np.asarray(function.table).astype(dtype)[arrays[0].view(np.uint8)]


def _quantised(function: elements.Quantised, arrays: Arrays, dtype: str) -> Any:
    numbers = function.numbers
    return reference.quantised(arrays[0], np.float32(numbers.scale), numbers.zero, low=numbers.low, high=numbers.high)


def _quantised_even(function: onnx_ir.QuantizeEven, arrays: Arrays, dtype: str) -> Any:
    return onnx.quantised_even(arrays[0], function.scale, function.zero, function.low, function.high)


_VALUES: dict[type, Callable[[Any, Arrays, str], Any]] = {
    elements.AddQuantised: lambda f, arrays, _: reference.quantised_sum(f.numbers, *arrays, is_difference=f.subtract),
    elements.AddShifted: lambda f, arrays, _: reference.shifted_sum(f.numbers, *arrays, is_difference=f.subtract),
    elements.Arithmetic: lambda f, arrays, _: reference.plain_result(f.operator, *arrays, low=f.low, high=f.high),
    elements.Product: lambda f, arrays, _: reference.product(f.numbers, *arrays),
    elements.HighProduct: lambda f, arrays, _: reference.high_product(f.numbers, *arrays),
    elements.Quotient: lambda f, arrays, _: reference.quotient(f.numbers, *arrays),
    elements.SquaredDifference: lambda f, arrays, _: reference.squared_difference(f.numbers, *arrays),
    elements.Prelu: lambda f, arrays, _: reference.prelu(f.numbers, *arrays),
    elements.Float: lambda f, arrays, _: FLOAT_FUNCTIONS[f.kind].of(arrays),
    elements.Plain: _plain,
    elements.Lookup: _table,
    elements.Interpolated: lambda f, arrays, _: tables.interpolated(arrays[0], f.table),
    elements.Sigmoid: lambda f, arrays, _: tables.interpolated_sigmoid(arrays[0], f.numbers, f.kind == "TANH"),
    elements.Root: lambda f, arrays, _: reference.root(arrays[0], f.source, f.target),
    elements.Rescaled: lambda f, arrays, _: f.numbers.apply(arrays[0]),
    elements.Clamped: lambda f, arrays, _: np.clip(arrays[0], f.low, f.high),
    elements.Quantised: _quantised,
    elements.QuantisedEach: lambda f, arrays, _: reference.quantised(*arrays, low=f.low, high=f.high),
    elements.Dequantised: lambda f, arrays, _: reference.dequantised(arrays[0], np.float32(f.scale), f.zero),
    elements.DequantisedEach: lambda f, arrays, _: reference.dequantised(*arrays),
    elements.Cast: lambda f, arrays, dtype: reference.converted(arrays[0], np.dtype(dtype)),
    elements.Compared: lambda f, arrays, _: reference.relation(f.operator, f.numbers, arrays),
    elements.Logic: lambda f, arrays, _: reference.LOGIC[f.kind](*arrays),
    elements.Selected: lambda f, arrays, _: np.where(*arrays),
    onnx_ir.Lookup: _byte_table,
    onnx_ir.QuantizeEven: _quantised_even,
}
"""By class of `ir/elements.py`: the function from an object of it, the operands and the dtype to the results."""
