# SPDX-License-Identifier: Apache-2.0
"""Operators of the user, as in `interpret/user.py`."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.execute.registry import Arrays, executes
from opwest.importers.models.graph.user import opaque_results
from opwest.importers.models.ir.user import UserCall


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
