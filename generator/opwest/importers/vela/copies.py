# SPDX-License-Identifier: Apache-2.0
"""Copies at the borders of the NPU: its inputs and outputs have the places that its command streams use.

The lowering lets tensors be views of others (RESHAPE, CONCATENATION), or removes operators that change nothing. Vela
has planned a place for each tensor, and the NPU reads that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from opwest.importers.models.graph.types import Tensor
from opwest.importers.models.graph.user import UserOperator
from opwest.importers.models.ir.operations import Copy
from opwest.importers.models.ir.program import Operation, Program, Value
from opwest.importers.models.ir.user import UserCall
from opwest.importers.vela.file import Call


def with_copies(program: Program, calls: Mapping[UserOperator, Call]) -> None:
    """Change a program: every input and output of the NPU is a value of its tensor, and no view."""
    program.operations[:] = [
        found
        for operation in program.operations
        for found in (
            _bordered(program, operation, calls[operation.operator])
            if isinstance(operation, UserCall) and operation.operator in calls
            else [operation]
        )
    ]


def _bordered(program: Program, call: UserCall, of: Call) -> Iterator[Operation]:
    replaced: dict[Value, Value] = {}
    for value, tensor in zip(call.inputs, of.inputs, strict=True):
        if value.root is not None or program.tensors.get(value) is not tensor:
            replaced[value] = _own(program, value, tensor)
            yield Copy(f"{call.label.split(' ', 1)[0]} (copy to the NPU's input)", (value,), (replaced[value],))
    copies = []
    for value, tensor in zip(call.results, of.outputs, strict=True):
        if value.root is not None or program.tensors.get(value) is not tensor:
            replaced[value] = _own(program, value, tensor)
            label = f"{call.label.split(' ', 1)[0]} (copy of the NPU's output)"
            copies.append(Copy(label, (replaced[value],), (value,)))
    inputs, results = (tuple(replaced.get(one, one) for one in some) for some in (call.inputs, call.results))
    tensors = tuple((argument, replaced.get(one, one)) for argument, one in call.tensors)
    yield replace(call, inputs=inputs, results=results, tensors=tensors)
    yield from copies


def _own(program: Program, value: Value, tensor: Tensor) -> Value:
    """Return a value with the place of a tensor."""
    for other in [one for one, of in program.tensors.items() if of is tensor]:
        del program.tensors[other]
    found = Value(tensor.name, "intermediate", value.dtype, value.shape, value.quantization)
    program.tensors[found] = tensor
    return found
