# SPDX-License-Identifier: Apache-2.0
"""The multiplications of an operation and the bytes of its weights, for tables and rooflines."""

from __future__ import annotations

from typing import Any

from opwest.compiler.ir.operations import (
    Convolution,
    Depthwise,
    DirectConvolution,
    Filter,
    HybridConvolution,
    HybridProduct,
    MatrixProduct,
    Memory,
)
from opwest.compiler.ir.program import Operation
from opwest.compiler.ir.signal import FilterBank
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.selection.costs import numbers_of

_WITH_PRODUCTS = (
    Convolution,
    Depthwise,
    DirectConvolution,
    HybridConvolution,
    HybridProduct,
    MatrixProduct,
    Filter,
    FilterBank,
)


def macs_of(operation: Operation) -> int:
    """Return the multiplications of data with weights, or of two matrices, that are added to sums.

    Those with the padding of windows count, as in most tools; those of a requantisation, of pools and of functions of
    elements do not. A transposed convolution multiplies each element of its data with each weight of its channel.
    """
    if isinstance(operation, Striped):
        return sum(layer.height // layer.count * macs_of(layer.operation) for layer in operation.layers)
    if isinstance(operation, Memory):
        steps = operation.inputs[0].size // operation.inputs[0].shape[-1]
        return steps * sum(int(part.size) for part in (operation.weights, operation.projection) if part is not None)
    return numbers_of(operation)["product"] if isinstance(operation, _WITH_PRODUCTS) else 0


def weight_bytes(operation: Operation) -> int:
    """Return the bytes of the weights as the model has them, without biases and the numbers of a requantisation."""
    if isinstance(operation, Striped):
        return sum(weight_bytes(layer.operation) for layer in operation.layers)
    if isinstance(operation, DirectConvolution | MatrixProduct):
        return operation.inputs[1].nbytes if operation.inputs[1].base.role == "constant" else 0
    if isinstance(operation, FilterBank):
        return sum(value.nbytes for value in operation.inputs[1:3])
    arrays: list[Any] = [getattr(operation, name, None) for name in ("weights", "feature", "time", "projection")]
    return sum(int(array.nbytes) for array in arrays if array is not None)
