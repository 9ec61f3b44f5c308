# SPDX-License-Identifier: Apache-2.0
"""microTVM's C interface: include/tvmgen_<module>.h and src/<model>_tvmgen.c, on top of the model's own functions."""

from __future__ import annotations

from typing import Any

from opwest.model.c_names import CNames
from opwest.model.model import Model
from opwest.model.tvmgen_names import Tvmgen
from opwest.plan.memory import MemoryPlan
from opwest.render.c.header import pool_rows, workspace_tail
from opwest.render.devices import device_rows
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import interface_rows, manifest_name


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
        {**tensor, "member": member, "size_macro": tvmgen.size_macro(member), "title": _title(tensor)}
        for tensor, member in ((t, tvmgen.member(t["name"])) for t in interface_rows(model))
    ]
    devices = device_rows(model)
    by_role = {role: [t for t in tensors if t["role"] == role] for role in ("input", "output")}
    rows = {
        "model": model.name,
        "macro": names.macro,
        "manifest": manifest_name(model),
        "prefix": prefix,
        "upper": prefix.upper(),
        "tensors": tensors,
        "inputs": by_role["input"],
        "outputs": by_role["output"],
        "devices": [{**device, "member": tvmgen.member(device["name"])} for device in devices],
        "pools": pools,
        "workspace_macro": tvmgen.workspace_macro,
        "workspace_size": sum(pool["size"] for pool in used),
        "same": [
            *(f"given.{device['name']} == context.{device['name']}" for device in devices),
            *(f"instance.{p['pool']} == (uint8_t *)workspace_pools->{p['member']}" for p in pools if p["pool"]),
        ],
        "storage": not pools or bool(static),
        "unset": len(used),
        "workspace_tail": workspace_tail(len(devices), [t for t in tensors if t["placed"]]),
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
                "member": member,
                "macro": tvmgen.pool_macro(member),
                "pool": name,
                "size": pool["size"] if pool else 1,
                "align": pool["align"] if pool else 1,
            }
        )
    return rows
