# SPDX-License-Identifier: Apache-2.0
"""The table of states that open, run and reset need: struct opwest_state of the runtime."""

from __future__ import annotations

from hashlib import sha256

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import CNames
from opwest.model.types.dtypes import DTYPES
from opwest.model.types.identifiers import member_name
from opwest.model.types.model import Interface, Model, State
from opwest.plan.memory import MemoryPlan
from opwest.render.tables import layout
from opwest.render.tables.layout import MEASURE, SLOT, STATUS, U8
from opwest.render.tables.tensors import binding_indices, binding_record, bound_record
from opwest.render.tables.types import Field, FieldType, Index, Nested, Pointer, Scalar, Struct, Table
from opwest.render.tables.values import NULL, RUN, Definition, Number, Record, Reference, Value

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


_HEADER = 8
"""Bytes of the hash that precedes saved contents."""


def resets_after_failure(model: Model) -> bool:
    """Whether a failed run sets the states to their initial content: steps may have changed some of them."""
    return any(state.next is None for state in model.states)


def saved_size(model: Model) -> int:
    """Return the size of the saved states, bytes."""
    return _HEADER + sum(state.type.size for state in model.states)


def define_states(model: Model, plan: MemoryPlan) -> list[Definition]:
    """Return the table of a model; empty without states."""
    if not model.states:
        return []
    names = CNames(model.name)
    pools = {pool.name: index for index, pool in enumerate(used_pools(model, plan))}
    indices = binding_indices(model)
    sizes = {constant.name: constant.type.size for constant in model.constants}
    rows: list[Value] = []
    for state in model.states:
        pool, offset = plan.place(state.name)
        fields: dict[str, Value] = {
            "initial": Reference(names.constant(state.initial)) if state.initial else NULL,
            "initial_size": Number(sizes[state.initial] if state.initial else 0),
            "offset": Number(offset),
            "size": Number(state.type.size),
            "pool": Number(pools[pool]),
            "buffer": Number(indices["buffer", state.name]),
            "next": bound_record(state.next, indices) if state.next else binding_record("input", layout.NO_NEXT.value),
        }
        rows.append(Record(layout.STATE_TENSOR, fields))
    identity = layout_hash(model.states)
    table = "state_tensors"
    head: dict[str, Value] = {
        "tensors": Reference(table),
        "count": Number(len(rows)),
        "size": Number(saved_size(model)),
        "layout_low": Number(identity & 0xFFFFFFFF),
        "layout_high": Number(identity >> 32),
    }
    return [
        Definition(table, Table(layout.STATE_TENSOR, len(rows)), tuple(rows), part=RUN),
        Definition(names.function("state"), layout.STATE, (Record(layout.STATE, head),), linkage="public", part=RUN),
    ]


def layout_hash(states: tuple[State, ...]) -> int:
    """Return the first 64 bits of the SHA-256 of the names, types and order of the states."""
    text = "\n".join(f"{state.name}: {state.type}" for state in states)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little")
