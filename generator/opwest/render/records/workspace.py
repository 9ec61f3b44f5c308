# SPDX-License-Identifier: Apache-2.0
"""The pools that a model uses, and the structure of its workspace, as in include/<model>.h."""

from __future__ import annotations

from dataclasses import dataclass

from opwest.model.dtypes import DTYPES
from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.render.records.layout import MEASURE, SLOT, STATUS, U8
from opwest.render.records.types import Field, FieldType, Nested, Pointer, Scalar, Struct

_BOOL = Scalar(DTYPES["bool"])


@dataclass(frozen=True, slots=True)
class UsedPool:
    """A pool with tensors: `size` and `align` in bytes."""

    name: str
    size: int
    align: int


def used_pools(model: Model, plan: MemoryPlan) -> list[UsedPool]:
    """Return the pools with tensors, in the manifest's order."""
    return [
        UsedPool(pool.name, plan.pools[pool.name].size, max(plan.pools[pool.name].align, pool.align))
        for pool in model.pools
        if pool.name in plan.pools
    ]


def workspace_struct(model: Model, plan: MemoryPlan, *, profiled: bool = False) -> Struct:
    """Return struct <model>_workspace; `profiled` adds the last field, of CONFIG_OPWEST_PROFILE."""
    pools: list[tuple[str, FieldType]] = [(pool.name, Pointer(U8, is_const=False)) for pool in used_pools(model, plan)]
    members = [*pools, ("status", Nested(STATUS)), ("opened", _BOOL)]
    if model.devices:
        members.append(("slots", Nested(SLOT, len(model.devices))))
    for role, tensors in (("input", model.inputs), ("output", model.outputs)):
        placed = [Field(t.name, Pointer(Scalar(t.type.dtype), is_const=False)) for t in tensors if t.placed]
        if placed:
            members.append((role, Nested(Struct(role, "", "", tuple(placed)))))
    if profiled:
        members.append(("profile", Nested(MEASURE, 0)))
    name = f"{model.name}_workspace"
    fields = tuple(Field(*member) for member in members)
    return Struct(f"{name}_profiled" if profiled else name, f"struct {name}", f"{model.name}.h", fields)
