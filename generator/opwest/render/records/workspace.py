# SPDX-License-Identifier: Apache-2.0
"""The pools that a model uses, and the structure of its workspace, as in include/<model>.h."""

from __future__ import annotations

from opwest.model.dtypes import DTYPES
from opwest.model.identifiers import member_name
from opwest.model.model import Interface, Model
from opwest.plan.memory import MemoryPlan
from opwest.records import dataclass
from opwest.render.records.layout import MEASURE, SLOT, STATUS, U8
from opwest.render.records.types import Field, FieldType, Index, Nested, Pointer, Scalar, Struct

_BOOL = Scalar(DTYPES["bool"])


@dataclass(frozen=True, slots=True)
class UsedPool:
    """A pool with tensors: `size` and `align` in bytes."""

    name: str
    size: int
    align: int

    @property
    def member(self) -> str:
        """The member of the workspace."""
        return member_name(self.name)


def used_pools(model: Model, plan: MemoryPlan) -> list[UsedPool]:
    """Return the pools with tensors, in the manifest's order."""
    return [
        UsedPool(pool.name, plan.pools[pool.name].size, max(plan.pools[pool.name].align, pool.align))
        for pool in model.pools
        if pool.name in plan.pools
    ]


def workspace_struct(model: Model, plan: MemoryPlan, *, profiled: bool = False) -> Struct:
    """Return struct <model>_workspace; `profiled` adds the last field, of CONFIG_OPWEST_PROFILE."""
    pointer = Pointer(U8, is_const=False)
    pools: list[tuple[str, FieldType]] = [(pool.member, pointer) for pool in used_pools(model, plan)]
    members = [*pools, ("status", Nested(STATUS)), ("opened", _BOOL)]
    if model.checks.busy:
        members.append(("running", Index()))  # opwest_port_flag_t is as large as a pointer
    if model.devices:
        members.append(("slots", Nested(SLOT, len(model.devices))))
    for role, tensors in (("input", model.inputs), ("output", model.outputs)):
        placed = [_member(tensor) for tensor in tensors if tensor.placed]
        if placed:
            members.append((role, Nested(Struct(role, "", "", tuple(placed)))))
    if profiled:
        members.append(("profile", Nested(MEASURE, 0)))
    name = f"{model.name}_workspace"
    fields = tuple(Field(*member) for member in members)
    return Struct(f"{name}_profiled" if profiled else name, f"struct {name}", f"{model.name}.h", fields)


def _member(tensor: Interface) -> Field:
    return Field(member_name(tensor.name), Pointer(Scalar(tensor.type.dtype), is_const=False))
