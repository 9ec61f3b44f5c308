# SPDX-License-Identifier: Apache-2.0
"""int8 sums and products of tensors with equal shapes as calls of CMSIS-NN."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.emit.cmsis_nn.extensions import HEADERS, ROUNDING, cmsis_nn
from opwest.importers.models.emit.cmsis_nn.layers import LEAST_SHIFT
from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.elements import Product
from opwest.importers.models.ir.functions import AddQuantised
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.operators.fixed_point import Multiplier

MOST_LEFT = 14
"""The greatest shift to the left of a product of two 9-bit numbers."""


@cmsis_nn(Elementwise)
def elementwise(operation: Elementwise, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_elementwise_add_s8 or arm_elementwise_mul_s8; None for other functions and shapes."""
    del extensions  # no scratch memory
    result, function = operation.results[0], operation.function
    if len(operation.inputs) != 2 or {one.dtype for one in (*operation.inputs, result)} != {"int8"}:
        return None
    if any(one.shape != result.shape for one in operation.inputs):
        return None
    if isinstance(function, AddQuantised) and not function.subtract:
        numbers = function.numbers
        multipliers = (*numbers.multipliers, numbers.result)
        if any(not LEAST_SHIFT <= one.shift <= 0 for one in multipliers):
            return None
        one, other = (f"{-z}, {_scale(m)}" for z, m in zip(numbers.zeros, numbers.multipliers, strict=True))
        called, places = f"arm_elementwise_add_s8(a, b, {one}, {other}, {numbers.left_shift},", numbers.result
    elif isinstance(function, Product):
        product = function.numbers
        if not LEAST_SHIFT <= product.multiplier.shift <= MOST_LEFT:
            return None
        called, places = f"arm_elementwise_mul_s8(a, b, {-product.zeros[0]}, {-product.zeros[1]},", product.multiplier
    else:
        return None
    limits = function.numbers
    lines = Lines()
    lines.add(
        f"const arm_cmsis_nn_status status = {called}",
        f"\tresult, {limits.zero}, {_scale(places)}, {limits.low}, {limits.high}, {result.size});",
        "",
        "return status == ARM_CMSIS_NN_SUCCESS ? 0 : -EINVAL;",
    )
    name = "cmsis_nn_add" if isinstance(function, AddQuantised) else "cmsis_nn_mul"
    parameters = (Parameter("a", "int8"), Parameter("b", "int8"), Parameter("result", "int8", "out", ("a", "b")))
    made = Function(
        name, parameters, str(lines), (ROUNDING,), HEADERS, has_status=True, external=(called.partition("(")[0],)
    )
    return Call(made, (*operation.inputs, result), operation.label)


def _scale(multiplier: Multiplier) -> str:
    return f"{multiplier.fixed}, {multiplier.shift}"
