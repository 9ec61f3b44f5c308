# SPDX-License-Identifier: Apache-2.0
"""src/<model>_tvm_crt.c: operators in the layout of microTVM's system library, and their adapters.

Every model that requests it defines its adapters; the first model of an application defines the table of them all.
"""

from __future__ import annotations

from typing import Any, Final

from opwest.model.c_names import CNames
from opwest.model.conventions import PACKED_ARRAYS, EntryKind
from opwest.model.crt_table import Library, adapted
from opwest.model.devices import STRUCT_DEVICE
from opwest.model.model import Argument, Model, Operator
from opwest.render.c.run import call_text, plain_types, prototype
from opwest.render.literals import c_string
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import manifest_name

TYPE_CODES: Final = PACKED_ARRAYS.type_codes
"""The kinds of parameters of adapters."""


def entry_kind(argument: Argument) -> EntryKind:
    """Return the parameter of an adapter for an argument; memory that opwest adds is passed as a tensor."""
    if not argument.scalar:
        return "tensor"
    return "float" if argument.type.dtype.is_float else "integer"


def entry_kinds(operator: Operator) -> list[EntryKind]:
    """Return the parameters of an adapter: all arguments, then the device."""
    kinds = [entry_kind(argument) for argument in operator.args]
    return kinds + (["pointer"] if operator.takes_device else [])


def render_system_library(render: Renderer, model: Model, library: Library) -> bytes | None:
    """Return src/<model>_tvm_crt.c; None if the model does not use the system library."""
    adapters = adapted(model)
    leads = library.lead == model.name
    if not adapters and not leads:
        return None
    names = CNames(model.name)
    own = {names.packed_adapter(operator.name) for operator in adapters}
    return render(
        "models/model/src/model_tvm_crt.c",
        model=model.name,
        manifest=manifest_name(model),
        handles=sorted({o.handle.split()[-2] for o in adapters if o.takes_device and o.handle != STRUCT_DEVICE}),
        devices=any(o.takes_device and o.handle == STRUCT_DEVICE for o in adapters),
        adapters=[_adapter_row(names, operator) for operator in adapters],
        leads=leads,
        externals=[row.symbol for row in library.rows if row.symbol not in own] if leads else [],
        rows=[{"name": c_string(row.name), "symbol": row.symbol} for row in library.rows] if leads else [],
        names_size=names_size(library),
    )


def names_size(library: Library) -> int:
    """Return the bytes of the names, each ended by NUL, and of the final NUL."""
    return sum(len(row.name.encode()) + 1 for row in library.rows) + 1


def _adapter_row(names: CNames, operator: Operator) -> dict[str, Any]:
    args = []
    for index, argument in enumerate(operator.args):
        kind = entry_kind(argument)
        if kind == "tensor":
            args.append(f"data(&args[{index}])")
        else:
            dtype = argument.type.dtype
            args.append(f"({dtype.c_type})args[{index}].{dtype.packed_member}")
    if operator.takes_device:
        args.append(f"args[{len(operator.args)}].v_handle")
    return {
        "name": names.packed_adapter(operator.name),
        "prototype": prototype(names.callee(operator), operator, plain_types(operator)),
        "codes": [TYPE_CODES[kind][1] for kind in entry_kinds(operator)],
        "call": call_text(names.callee(operator), args),
        "has_status": operator.returns_status,
        "has_tensors": "tensor" in entry_kinds(operator),
    }
