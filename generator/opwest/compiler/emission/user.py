# SPDX-License-Identifier: Apache-2.0
"""Calls of operators of the user: their functions are in the files of the user."""

from __future__ import annotations

from math import prod

from opwest.compiler.emission.function import Call, Function, Parameter
from opwest.compiler.emission.registry import emits
from opwest.compiler.ir.rows import UserCall


@emits(UserCall)
def render(operation: UserCall) -> Call:
    """Return the call."""
    user = operation.operator
    parameters = tuple(
        Parameter(
            one.name,
            one.dtype,
            one.direction,
            tuple(one.keys.get("in_place", ())),
            prod(one.shape or ()) if one.direction == "scratch" else 0,
        )
        for one in user.arguments
        if not one.is_scalar
    )
    values = tuple(value for _, value in operation.tensors)
    return Call(Function(user.name, parameters, "", user=user), values, operation.label, operation.scalars)
