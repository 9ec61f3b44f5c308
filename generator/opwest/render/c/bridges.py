# SPDX-License-Identifier: Apache-2.0
"""src/<model>_bridges.c: functions with plain parameters that call operators of other conventions."""

from __future__ import annotations

from itertools import count
from typing import Any

from opwest.model.types.c_names import CNames
from opwest.model.types.conventions import CONVENTIONS, Arrays, Descriptors
from opwest.model.types.model import Model, Operator
from opwest.render.c.printer import c_definitions, c_struct_value
from opwest.render.c.run import call_text, prototype
from opwest.render.tables.arrays import BridgeTables, Described, Entry, entries, supplied, tensors
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import heading


def render_bridges(render: Renderer, model: Model) -> bytes:
    """Return src/<model>_bridges.c."""
    names = CNames(model.name)
    tables = BridgeTables()
    bridged = [operator for operator in model.operators if operator.is_bridged]
    bridges = [_bridge_row(names, operator, tables) for operator in bridged]
    return render(
        "models/model/src/model_bridges.c",
        **heading(model),
        tables=c_definitions(tables.define()),
        bridges=bridges,
        headers=_headers(model),
    )


def _bridge_row(names: CNames, operator: Operator, tables: BridgeTables) -> dict[str, Any]:
    """Return the row of one bridge; `tables` collects the tables of shapes and strides."""
    workspace, need = supplied(operator, "workspace"), operator.workspace
    arrays = operator.convention.arrays
    row: dict[str, Any] = {
        "name": operator.name,
        "head": prototype(names.bridge(operator.name), operator),
        "arrays": None,
        "has_code": operator.returns_status,
        "enter": None
        if workspace is None or need is None
        else f"&note, arg{workspace}, {need.rounded // need.align}U, {need.align.bit_length() - 1}U",
    }
    if operator.convention.descriptors is not None:
        described = tables.described(operator)
        row["arrays"] = _descriptors_row(described, operator.convention.descriptors) if described else None
        passed = _described_arguments(operator, described)
    elif arrays is not None:
        row["arrays"] = _arrays_row(operator, arrays, tables)
        passed = _passed(operator, arrays)
    else:
        row["arrays"] = _tables_row(operator)
        passed = _plain_arguments(operator)
    return row | {"statements": _statements(operator, call_text(names.operator(operator.symbol), passed))}


def _statements(operator: Operator, call: str) -> list[str]:
    """Return the call of the compiled function, and the return of its status."""
    if operator.result is not None:
        return [f"*arg{operator.args.index(operator.result)} = {call}"]
    if not operator.returns_status:
        return [call]
    descriptors = operator.convention.descriptors
    code = f"{descriptors.status}(code)" if descriptors is not None and descriptors.status else "code"
    if operator.workspace is not None:
        code = f"opwest_tvm_leave(&note, {code})"
    elif operator.convention.arrays is not None:
        code = "opwest_tvm_code(code)"
    return [f"code = {call}", f"return {code}"]


def _tables_row(operator: Operator) -> dict[str, Any] | None:
    """Return the row of the tables of pointers of a call; None without tables."""
    tables = [p for p in operator.passing if p.entries is not None]
    if not tables:
        return None
    fills = []
    for number, table in enumerate(tables):
        for place, index in enumerate(table.entries or ()):
            value = "NULL" if index is None else f"arg{index}"
            if index is not None and operator.args[index].c_type != table.entry_type:
                value = f"({table.entry_type})(uintptr_t){value}"
            fills.append(f"arrays->table_{number}[{place}] = {value};")
    return {
        "memory": None,
        "size": None,
        "members": [f"{t.entry_type}table_{number}[{len(t.entries or ())}];" for number, t in enumerate(tables)],
        "constants": [],
        "tables": [],
        "fills": fills,
    }


def _plain_arguments(operator: Operator) -> list[str]:
    """Return the arguments of a compiled function that takes pointers and values."""
    tables = count()
    passed = []
    for parameter in operator.passing:
        if parameter.entries is not None:
            passed.append(f"arrays->table_{next(tables)}")
        else:
            passed.append("NULL" if parameter.argument is None else f"arg{parameter.argument}")
    return [*passed, *([f"arg{len(operator.args)}"] if operator.takes_device else [])]


def _descriptors_row(described: list[Described], descriptors: Descriptors) -> dict[str, Any]:
    """Return the row of the structures that describe the tensors of a call."""
    return {
        "memory": None,
        "size": None,
        "members": [f"{tensor.value.struct.c_type} {tensor.member};" for tensor in described],
        "constants": [f".{tensor.member} = {c_struct_value(tensor.value)}," for tensor in described],
        "tables": [],
        "fills": [
            f"arrays->{tensor.member}.{member} = (void *)(uintptr_t)arg{tensor.parameter};"
            for tensor in described
            for member in descriptors.data
        ],
    }


def _described_arguments(operator: Operator, described: list[Described]) -> list[str]:
    """Return the arguments of the compiled function."""
    members = {tensor.parameter: tensor.member for tensor in described}
    return [
        f"&arrays->{members[index]}" if index in members else f"arg{index}"
        for index, argument in enumerate(operator.args)
        if argument.is_passed
    ]


def _arrays_row(operator: Operator, arrays: Arrays, collected: BridgeTables) -> dict[str, Any]:
    """Return the row of a bridge's arrays; `memory` is their location if they are not on the stack."""
    memory = supplied(operator, "arrays")
    listed = entries(operator)
    codes = [arrays.type_codes[entry.kind][1] for entry in listed]
    described = [c_struct_value(collected.tensor(argument, arrays)) for argument in tensors(operator)]
    tables: list[str] = []
    typed = [f".values[{index}].type_index = {code}," for index, code in enumerate(codes)]
    if arrays.has_code_array:
        tables = [f"static const int32_t {operator.name}_codes[] = {{{', '.join(codes)}}};"]
        typed = [".result_code = kTVMNullptr,"]
    return {
        "memory": None if memory is None else f"arg{memory}",
        "size": None if memory is None else operator.args[memory].type.size,
        "members": [
            *([f"DLTensor tensors[{len(described)}];"] if described else []),
            f"{arrays.value_type} values[{len(listed)}];",
            f"{arrays.value_type} result;",
            *(["int32_t result_code;"] if arrays.has_code_array else []),
        ],
        "constants": [
            *(f".tensors[{index}] = {tensor}," for index, tensor in enumerate(described)),
            *typed,
        ],
        "tables": tables,
        "fills": [line for index, entry in enumerate(listed) for line in _fill(entry, index, arrays.pointer)],
    }


def _passed(operator: Operator, arrays: Arrays) -> list[str]:
    """Return the arguments of a compiled function with arrays, by the names of its parameters."""
    passed = {
        "args": "arrays->values",
        "type_codes": f"(int32_t *)(uintptr_t){operator.name}_codes",
        "num_args": str(len(entries(operator))),
        "result": "&arrays->result",
        "ret_value": "&arrays->result",
        "ret_type_code": "&arrays->result_code",
    }
    return [passed.get(name, "NULL") for name, _ in arrays.parameters]


def _headers(model: Model) -> list[str]:
    """Return the headers of the conventions that a model has, in the order of the table."""
    used = {operator.convention.name for operator in model.operators}
    passing = [c.arrays or c.descriptors for c in CONVENTIONS if c.name in used]
    headers = [convention.header for convention in passing if convention is not None]
    return [*headers, *(["opwest/tvm_workspace.h"] if any(o.uses_tvm for o in model.operators) else [])]


def _fill(entry: Entry, index: int, pointer: str) -> list[str]:
    """Return the assignments to the arrays for one entry; `pointer` is the member for pointers."""
    value = f"arg{entry.parameter}"
    place = f"arrays->values[{index}]"
    if entry.kind == "tensor":
        tensor = f"arrays->tensors[{entry.tensor}]"
        return [f"{tensor}.data = (void *)(uintptr_t){value};", f"{place}.{pointer} = &{tensor};"]
    if entry.kind == "pointer":
        return [f"{place}.{pointer} = (void *)(uintptr_t){value};"]
    if entry.kind == "float":
        return [f"{place}.v_float64 = (double){value};"]
    return [f"{place}.v_int64 = (int64_t){value};"]
