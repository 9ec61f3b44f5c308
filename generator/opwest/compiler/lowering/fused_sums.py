# SPDX-License-Identifier: Apache-2.0
"""Join convolutions and the int8 sums that read them: the tensor between them needs no memory."""

from __future__ import annotations

import dataclasses

from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Elementwise
from opwest.compiler.ir.program import FUSED_SUMS, Operation, Program, Value


def fuse_sums(program: Program) -> Program:
    """Return a program with one operation for a convolution and its only reader, a sum of tensors of equal shapes."""
    writers = {value: operation for operation in program.operations for value in operation.results}
    readers: dict[Value, list[Operation]] = {}
    for operation in program.operations:
        for value in operation.inputs:
            readers.setdefault(value.base, []).append(operation)
    order = {operation: place for place, operation in enumerate(program.operations)}
    removed: set[Operation] = set()
    operations = list(program.operations)
    for place, operation in enumerate(program.operations):
        if not isinstance(operation, Elementwise) or not isinstance(operation.function, AddQuantised):
            continue
        found = [
            number
            for number, value in enumerate(operation.inputs)
            if _can_fuse(writers.get(value), operation, value, readers)
        ]
        if not found:
            continue
        # The later convolution: the other operand is complete then.
        which = max(found, key=lambda number: order[writers[operation.inputs[number]]])
        layer = writers[operation.inputs[which]]
        assert isinstance(layer, Convolution)
        removed.add(layer)
        fields = {field.name: getattr(layer, field.name) for field in dataclasses.fields(layer)}
        fields["label"] = f"{layer.label}, {operation.label}"
        fields["inputs"] = (*layer.inputs, operation.inputs[1 - which])
        fields["results"] = operation.results
        operations[place] = ConvolutionSum(**fields, function=operation.function, place=which)
    if not removed:
        return program
    return program.derived(FUSED_SUMS, operations=[one for one in operations if one not in removed])


def _can_fuse(
    writer: Operation | None, reader: Elementwise, value: Value, readers: dict[Value, list[Operation]]
) -> bool:
    if type(writer) is not Convolution or writer.groups != 1 or value.role != "intermediate" or value.root is not None:
        return False
    values = (*writer.inputs, *reader.inputs, *reader.results)
    is_plain = all(one.dtype == "int8" for one in values) and len({*reader.inputs}) == 2
    shapes = {one.shape for one in (*reader.inputs, *reader.results)}
    return is_plain and len(shapes) == 1 and len(value.shape) == 4 and readers[value] == [reader]
