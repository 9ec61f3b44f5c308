# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: one for each class of `ir/elements.py`, and those of `ir/operations.py` from ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.execution.run import Arrays, executes
from opwest.compiler.ir import elements
from opwest.compiler.ir import operations as onnx_ir
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.reference import elementwise as reference
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
    elements.Lookup: lambda f, arrays, _: f.table[arrays[0].astype(np.int64) - np.iinfo(arrays[0].dtype).min],
    elements.Interpolated: lambda f, arrays, _: tables.interpolated(arrays[0], f.table),
    elements.Sigmoid: lambda f, arrays, _: tables.interpolated_sigmoid(arrays[0], f.numbers, f.kind == "TANH"),
    elements.Root: lambda f, arrays, _: reference.root(arrays[0], f.source, f.target),
    elements.Rescaled: lambda f, arrays, _: f.numbers.apply(arrays[0]),
    elements.Clamped: lambda f, arrays, _: np.clip(arrays[0], f.low, f.high),
    elements.Quantised: lambda f, arrays, _: reference.quantised_once(arrays[0], f.numbers),
    elements.QuantisedEach: lambda f, arrays, _: reference.quantised(*arrays, low=f.low, high=f.high),
    elements.Dequantised: lambda f, arrays, _: reference.dequantised(arrays[0], np.float32(f.scale), f.zero),
    elements.DequantisedEach: lambda f, arrays, _: reference.dequantised(*arrays),
    elements.Cast: lambda f, arrays, dtype: reference.converted(arrays[0], np.dtype(dtype)),
    elements.Compared: lambda f, arrays, _: reference.relation(f.operator, f.numbers, arrays),
    elements.Logic: lambda f, arrays, _: reference.LOGIC[f.kind](*arrays),
    elements.Selected: lambda f, arrays, _: np.where(*arrays),
    # The table is in the order of the bytes.
    onnx_ir.Lookup: lambda f, arrays, dtype: np.asarray(f.table).astype(dtype)[arrays[0].view(np.uint8)],
    onnx_ir.QuantizeEven: lambda f, arrays, _: reference.quantised_even(arrays[0], f.numbers),
}
"""By class of `ir/elements.py`: the function from an object of it, the operands and the dtype to the results."""
