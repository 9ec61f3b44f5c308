# SPDX-License-Identifier: Apache-2.0
"""The table of states that open, run and reset need: struct opwest_state of the runtime."""

from __future__ import annotations

from hashlib import sha256

from opwest.model.c_names import CNames
from opwest.model.model import Model, State
from opwest.plan.memory import MemoryPlan
from opwest.render.records import layout
from opwest.render.records.bindings import binding_indices, binding_record, bound_record
from opwest.render.records.types import Table
from opwest.render.records.values import NULL, RUN, Definition, Number, Record, Reference, Value
from opwest.render.records.workspace import used_pools

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
