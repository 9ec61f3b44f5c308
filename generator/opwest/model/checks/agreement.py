# SPDX-License-Identifier: Apache-2.0
"""Compare the type of a tensor with the argument of the operator that a step passes it for."""

from __future__ import annotations

from opwest.base.diagnostics import Location
from opwest.model.inputs.context import Context
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import Argument


def check_agreement(context: Context, argument: Argument, type_: TensorType, what: str, place: Location) -> None:
    """Report a tensor that a step passes for an argument of another type; `what` describes the tensor."""
    if argument.scalar:
        _check_value(context, argument, type_, what, place)
        return
    if argument.type == type_ or argument.location in context.untyped:
        return
    differs = "shape" if argument.type.dtype == type_.dtype else "dtype"
    hint = None
    if argument.type.size == type_.size and differs == "shape":
        hint = "the sizes are equal: declare the same shape in both places, or pass a view with this shape"
    context.faults.error(
        f"{differs} mismatch: {what} is {type_}, argument {argument.name!r} takes {argument.type}",
        place,
        expected=str(argument.type),
        hint=hint,
    )


def _check_value(context: Context, argument: Argument, type_: TensorType, what: str, place: Location) -> None:
    """Report a tensor whose value a step cannot pass: it has another dtype, or not one element."""
    dtype = argument.type.dtype
    if type_.elements == 1 and type_.dtype == dtype:
        return
    context.faults.error(
        f"{what} is {type_}, argument {argument.name!r} takes one {dtype.name} by value",
        place,
        expected=f"a tensor of one {dtype.name}, or a number",
        hint="for a pointer parameter, declare the argument with its shape, without scalar: true"
        if type_.elements != 1
        else None,
    )
