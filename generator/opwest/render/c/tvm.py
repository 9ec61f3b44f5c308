# SPDX-License-Identifier: Apache-2.0
"""src/<model>_tvm_crt.c: operators in the layout of microTVM's system library, and their adapters.

Every model that requests it defines its adapters; the first model of an application defines the table of them all.
"""

from __future__ import annotations

from typing import Any, Final

from opwest.model.readers.tvmgen import Library, adapted
from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.conventions import PACKED_ARRAYS, EntryKind
from opwest.model.types.model import Model, Operator
from opwest.model.types.sections import STRUCT_DEVICE, Tvmgen
from opwest.plan.memory import MemoryPlan
from opwest.render.c.header import pool_rows, workspace_tail
from opwest.render.c.run import call_text, prototype
from opwest.render.devices import device_rows
from opwest.render.literals import c_string
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import heading, interface_rows

TYPE_CODES: Final = PACKED_ARRAYS.type_codes
"""The kinds of parameters of adapters."""


def entry_kinds(operator: Operator) -> list[EntryKind]:
    """Return the parameters of an adapter: all arguments, then the device; memory that opwest adds is a tensor."""
    kinds: list[EntryKind] = [
        "tensor" if not argument.scalar else "float" if argument.type.dtype.is_float else "integer"
        for argument in operator.args
    ]
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
        **heading(model),
        handles=sorted({o.handle.split()[-2] for o in adapters if o.takes_device and o.handle != STRUCT_DEVICE}),
        adapters=[_adapter_row(names, operator) for operator in adapters],
        leads=leads,
        externals=[row.symbol for row in library.rows if row.symbol not in own] if leads else [],
        rows=[{"name": _ended(row.name), "symbol": row.symbol} for row in library.rows] if leads else [],
        names_size=names_size(library),
    )


def _ended(name: str) -> str:
    """Return the string literal of a name with a NUL."""
    return f'{c_string(name)[:-1]}\\0"'


def names_size(library: Library) -> int:
    """Return the bytes of the names, each ended by NUL, and of the final NUL."""
    return sum(len(row.name.encode()) + 1 for row in library.rows) + 1


def _adapter_row(names: CNames, operator: Operator) -> dict[str, Any]:
    args = []
    for index, argument in enumerate(operator.args):
        dtype = argument.type.dtype
        given = f"args[{index}]"
        args.append(f"({dtype.c_type}){given}.{dtype.packed_member}" if argument.scalar else f"data(&{given})")
    if operator.takes_device:
        args.append(f"args[{len(operator.args)}].v_handle")
    return {
        "name": names.packed_adapter(operator.name),
        "prototype": prototype(names.callee(operator), operator),
        "codes": [TYPE_CODES[kind][1] for kind in entry_kinds(operator)],
        "call": call_text(names.callee(operator), args),
        "has_status": operator.returns_status,
        "has_tensors": "tensor" in entry_kinds(operator),
    }


def render_tvmgen(render: Renderer, model: Model, plan: MemoryPlan) -> dict[str, bytes]:
    """Return the header and the source; nothing if the manifest does not request the interface."""
    tvmgen = model.tvmgen
    if tvmgen is None:
        return {}
    names = CNames(model.name)
    prefix = tvmgen.prefix
    pools = _pools(model, plan, tvmgen)
    used = pool_rows(model, plan)
    static = [pool for pool in used if pool["name"] not in {p["pool"] for p in pools}]
    tensors = [
        {
            **tensor,
            **_member(member),
            "size_macro": tvmgen.size_macro(member),
            "title": _title(tensor),
            "number": number,
        }
        for number, (tensor, member) in enumerate((t, tvmgen.member(t["name"])) for t in interface_rows(model))
    ]
    devices = device_rows(model)
    by_role = {role: [t for t in tensors if t["role"] == role] for role in ("input", "output")}
    device_members = [
        {**device, **_member(member)} for device, member in ((d, tvmgen.member(d["name"])) for d in devices)
    ]
    members = {row["tvm_member"]: row for row in (*tensors, *device_members, *pools)}
    rows = {
        **heading(model),
        "macro": names.macro,
        "prefix": prefix,
        "upper": prefix.upper(),
        "tensors": tensors,
        "inputs": by_role["input"],
        "outputs": by_role["output"],
        "devices": device_members,
        "changed": [row for row in members.values() if row["tvm_other"]],
        "pools": pools,
        "used": used,
        "copies": model.checks.buffers and any(tensor["placed"] for tensor in tensors),
        "workspace_macro": tvmgen.workspace_macro,
        "workspace_size": sum(pool["size"] for pool in used),
        "same": [
            *(f"given.{device['member']} == context.{device['member']}" for device in devices),
            *(
                f"instance.{pool['pool_member']} == (uint8_t *)workspace_pools->{pool['tvm_own']}"
                for pool in pools
                if pool["pool"]
            ),
        ],
        "storage": not pools or bool(static),
        "unset": len(used),
        "workspace_tail": workspace_tail(model),
    }
    return {
        f"include/{prefix}.h": render("models/model/include/tvmgen.h", **rows),
        f"src/{model.name}_tvmgen.c": render("models/model/src/model_tvmgen.c", **rows),
    }


def _title(tensor: dict[str, Any]) -> str:
    """Return the description of a tensor, whose buffer is always the caller's."""
    text: str = tensor["title"]
    copied = "copied to" if tensor["role"] == "input" else "copied from"
    return text.replace(", in the workspace", f", {copied} the workspace", 1)


def _member(name: str) -> dict[str, Any]:
    """Return a member of microTVM's interface: its name, and how the source refers to it.

    Applications use the name of the interface, so it is kept. `tvm_other` is its name where a macro has the first one;
    a name that begins with m_ could then be that of another member, and always changes.
    """
    other = member_name(name)
    if name.startswith("m_"):
        name = other
    changed = other != name
    return {
        "tvm_member": name,
        "tvm_other": other if changed else None,
        "tvm_own": f"OPWEST_MEMBER_{name}" if changed else name,
    }


def _pools(model: Model, plan: MemoryPlan, tvmgen: Tvmgen) -> list[dict[str, Any]]:
    """Return a row for every member of the structure of pools, with the model's pool, None if it has no more."""
    used = {pool["name"]: pool for pool in pool_rows(model, plan)}
    rest = [name for name in used if name not in tvmgen.pools]
    rows = []
    for member in tvmgen.pools:
        name = member if member in used else rest.pop(0) if rest else None
        pool = used[name] if name is not None else None
        rows.append(
            {
                **_member(member),
                "macro": tvmgen.pool_macro(member),
                "pool": name,
                "pool_member": pool["member"] if pool else None,
                "size": pool["size"] if pool else 1,
                "align": pool["align"] if pool else 1,
            }
        )
    return rows
