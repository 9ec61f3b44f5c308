# SPDX-License-Identifier: Apache-2.0
"""Positions of extremes, the greatest elements of rows, running sums."""

from __future__ import annotations

from math import prod

from opwest.importers.models.emit.expressions import plus
from opwest.importers.models.emit.finish import ending
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.ir.reduction import Greatest, Position, RunningSum
from opwest.importers.models.operators.reduction import SUM_SHIFT


def _split(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return the elements before a dimension, in it and behind it."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


@emits(Position)
def position(operation: Position) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    outer, count, inner = _split(data.shape, operation.axis)
    lines, kind = Lines(), c_type(data.dtype)
    sign = ">" if operation.is_greatest else "<"
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with lines.block(f"for (int i = 0; i < {outer}; i++, data += {count * inner})"), lines.loop("j", inner):
        lines.add(f"{kind} best = data[j];", "int place = 0;", "")
        with lines.block(f"for (int k = 1; k < {count}; k++)"):
            lines.add(f"const {kind} value = data[k * {inner} + j];" if inner > 1 else f"const {kind} value = data[k];")
            lines.add("")
            # A number is before not a number.
            better = (
                f"value {sign} best"
                if data.dtype != "float32"
                else f"value {sign} best || (best != best && value == value)"
            )
            with lines.block(f"if ({better})"):
                lines.add("best = value;", "place = k;")
        lines.add("*y++ = place;")
    parameters = (Parameter("data", data.dtype), Parameter("result", result.dtype, "out"))
    base = "position_of_greatest" if operation.is_greatest else "position_of_least"
    return Call(Function(base, parameters, str(lines)), (data, result), operation.label)


@emits(Greatest)
def greatest(operation: Greatest) -> Call:
    """Return the call: elements are inserted into the sorted result."""
    data, (values, positions) = operation.inputs[0], operation.results
    length, count = data.shape[-1], operation.count
    lines, kind = Lines(), c_type(data.dtype)
    before = "value > values[k - 1]"
    if data.dtype == "float32":
        before = f"({before} || (values[k - 1] != values[k - 1] && value == value))"
    head = f"for (int row = 0; row < {data.size // length}; row++, data += {length}"
    with lines.block(f"{head}, values += {count}, positions += {count})"), lines.loop("i", length):
        lines.add(f"const {kind} value = data[i];", f"int k = i < {count} ? i : {count};", "")
        with lines.block(f"for (; k > 0 && {before}; k--)"), lines.block(f"if (k < {count})"):
            lines.add("values[k] = values[k - 1];", "positions[k] = positions[k - 1];")
        with lines.block(f"if (k < {count})"):
            lines.add("values[k] = value;", "positions[k] = i;")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("values", values.dtype, "out"),
        Parameter("positions", positions.dtype, "out"),
    )
    return Call(Function("greatest", parameters, str(lines)), (data, values, positions), operation.label)


@emits(RunningSum)
def running_sum(operation: RunningSum) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    outer, count, inner = _split(data.shape, operation.axis)
    lines = Lines()
    kind = {"int8": "uint32_t", "int32": "uint32_t", "int64": "uint64_t"}.get(data.dtype, "float")
    end, start, element = None, "0", f"({kind})data[{{}}]"
    stored = f"({c_type(data.dtype)})sum"
    if operation.finish is not None:
        end = ending(operation.finish, 1, result=result.dtype)
        start = f"UINT32_C({(-operation.zero << SUM_SHIFT) % (1 << 32)})"
        element = f"(uint32_t)(data[{{}}]{plus(-operation.zero)}) << {SUM_SHIFT}"
        stored = end.result("(int32_t)sum")
    order = f"int k = {count - 1}; k >= 0; k--" if operation.is_reverse else f"int k = 0; k < {count}; k++"
    with (
        lines.block(f"for (int i = 0; i < {outer}; i++, data += {count * inner}, result += {count * inner})"),
        lines.loop("j", inner),
    ):
        lines.add(f"{kind} sum = {start};", "")
        with lines.block(f"for ({order})"):
            place = f"k * {inner} + j" if inner > 1 else "k"
            add = [f"sum += {element.format(place)};"]
            store = [f"result[{place}] = {stored};"]
            if operation.is_exclusive:
                add = [f"const {kind} value = {element.format(place)};", ""]
                store = [*store, "sum += value;"]
            lines.add(*add, *store)
    parameters = (Parameter("data", data.dtype), Parameter("result", result.dtype, "out", in_place=("data",)))
    helpers = () if end is None else end.helpers
    return Call(Function("running_sum", parameters, str(lines), helpers), (data, result), operation.label)
