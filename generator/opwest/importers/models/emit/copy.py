# SPDX-License-Identifier: Apache-2.0
"""Copies of whole tensors."""

from __future__ import annotations

from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Copy


@emits(Copy)
def render(operation: Copy) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    lines = Lines()
    lines.add(f"memcpy(result, data, {data.size} * sizeof({c_type(data.dtype)}));")
    parameters = (Parameter("data", data.dtype), Parameter("result", result.dtype, "out"))
    return Call(Function("copy", parameters, str(lines), (), ("string.h",)), (data, result), operation.label)
