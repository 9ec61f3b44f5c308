# SPDX-License-Identifier: Apache-2.0
"""src/<model>_bridges.c: functions with plain parameters that call operators of TVM's conventions."""

from __future__ import annotations

from typing import Any

from opwest.model.c_names import CNames
from opwest.model.model import Argument, Model, Operator
from opwest.render.c.run import call_text, plain_types, prototype
from opwest.render.call_arrays import TYPE_CODES, Entry, dl_dtype, entries, strides, supplied, tensors
from opwest.render.templates.environment import render
from opwest.render.tensors import manifest_name

_DTYPE_CODES = {0: "kDLInt", 1: "kDLUInt", 2: "kDLFloat", 6: "kDLBool"}


def render_bridges(model: Model) -> bytes:
    """Return src/<model>_bridges.c."""
    names = CNames(model.name)
    numbers: dict[tuple[int, ...], str] = {}
    bridges = [_bridge_row(names, operator, numbers) for operator in model.operators if operator.is_bridged]
    return render(
        "models/model/src/model_bridges.c",
        model=model.name,
        manifest=manifest_name(model),
        numbers=[{"name": name, "values": ", ".join(map(str, values))} for values, name in numbers.items()],
        bridges=bridges,
        conventions=sorted({operator.convention for operator in model.operators}),
    )


def _bridge_row(names: CNames, operator: Operator, numbers: dict[tuple[int, ...], str]) -> dict[str, Any]:
    """Return the row of one bridge; `numbers` collects the tables of shapes and strides."""
    named = [_parameter(type_, index) for index, type_ in enumerate(plain_types(operator))]
    workspace, arrays = supplied(operator, "workspace"), supplied(operator, "arrays")
    need = operator.workspace
    packed = operator.convention == "packed"
    row: dict[str, Any] = {
        "name": operator.name,
        "convention": operator.convention,
        "head": prototype(names.bridge(operator.name), operator, named),
        "arrays": None if arrays is None else f"arg{arrays}",
        "arrays_size": None if arrays is None else operator.args[arrays].type.size,
        "enter": None
        if workspace is None or need is None
        else f"&note, arg{workspace}, {need.rounded // need.align}U, {need.align.bit_length() - 1}U",
    }
    symbol = names.operator(operator.symbol)
    if operator.convention == "unpacked":
        passed = [f"arg{i}" for i, a in enumerate(operator.args) if a.supplied is None]
        passed += [f"arg{len(operator.args)}"] if operator.takes_device else []
        return row | {"call": call_text(f"code = {symbol}", passed)}
    listed = entries(operator)
    count = len(listed)
    call = (
        [
            "arrays->values",
            f"(int32_t *)(uintptr_t){operator.name}_codes",
            str(count),
            "&arrays->result",
            "&arrays->result_code",
        ]
        if packed
        else ["NULL", "arrays->values", str(count), "&arrays->result"]
    )
    codes = TYPE_CODES[operator.convention]
    return row | {
        "call": call_text(f"code = {symbol}", [*call, "NULL"] if packed else call),
        "tensors": [_tensor(argument, operator.convention, numbers) for argument in tensors(operator)],
        "values": [codes[entry.kind][1] for entry in listed],
        "value_type": "TVMValue" if packed else "TVMFFIAny",
        "fills": [line for index, entry in enumerate(listed) for line in _fill(entry, index, packed=packed)],
    }


def _parameter(c_type: str, index: int) -> str:
    """Return the declaration of a parameter."""
    return f"{c_type}arg{index}" if c_type.endswith("*") else f"{c_type} arg{index}"


def _tensor(argument: Argument, convention: str, numbers: dict[tuple[int, ...], str]) -> str:
    """Return the initialiser of a DLTensor without its data."""
    shape = argument.type.shape
    code, bits, lanes = dl_dtype(argument.type.dtype, convention)
    # From DLPack 1.2 on strides may not be left out; microTVM always left them out.
    step = _table(numbers, strides(shape)) if convention == "ffi" else "NULL"
    dtype = f"{{{_DTYPE_CODES[code]}, {bits}, {lanes}}}"
    return f"NULL, {{kDLCPU, 0}}, {len(shape)}, {dtype}, {_table(numbers, shape)}, {step}, 0"


def _table(numbers: dict[tuple[int, ...], str], values: tuple[int, ...]) -> str:
    if not values:
        return "NULL"
    return f"(int64_t *)(uintptr_t){numbers.setdefault(values, 'numbers_' + '_'.join(map(str, values)))}"


def _fill(entry: Entry, index: int, *, packed: bool) -> list[str]:
    """Return what is written into the arrays for one entry."""
    value = f"arg{entry.parameter}"
    place = f"arrays->values[{index}]"
    pointer = "v_handle" if packed else "v_ptr"
    if entry.kind == "tensor":
        tensor = f"arrays->tensors[{entry.tensor}]"
        return [f"{tensor}.data = (void *)(uintptr_t){value};", f"{place}.{pointer} = &{tensor};"]
    if entry.kind == "pointer":
        return [f"{place}.{pointer} = (void *)(uintptr_t){value};"]
    if entry.kind == "float":
        return [f"{place}.v_float64 = (double){value};"]
    return [f"{place}.v_int64 = (int64_t){value};"]
