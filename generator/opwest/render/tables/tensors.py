# SPDX-License-Identifier: Apache-2.0
"""Records of tensors: equal shapes and quantizations are defined once."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import Binding, Direction, Interface, Model, Quantization, State, TensorInfo
from opwest.plan.memory import MemoryPlan
from opwest.render.tables import layout
from opwest.render.tables.layout import MEASURE, SLOT, STATUS, U8
from opwest.render.tables.types import (
    NULL,
    RUN,
    Definition,
    Field,
    FieldType,
    Index,
    Nested,
    Null,
    Number,
    Pointer,
    Record,
    Reference,
    Scalar,
    Struct,
    Table,
    Text,
    Value,
)

Indices = dict[tuple[str, str], int]
"""The index of a tensor in the table of its role, by role and name."""


def binding_indices(model: Model) -> Indices:
    """Return the indices of all tensors. A buffer of the workspace precedes its role in the interface."""
    tables = {
        "buffer": [b.name for b in model.buffers],
        "input": [t.name for t in model.inputs],
        "output": [t.name for t in model.outputs],
        "constant": [c.name for c in model.constants],
        "view": [v.name for v in model.views],
    }
    return {(role, name): at for role, names in tables.items() for at, name in enumerate(names)}


def bound_record(binding: Binding, indices: Indices) -> Record:
    """Return the record of a tensor or view that a step or a state refers to."""
    if binding.view is not None:
        return binding_record("view", indices["view", binding.view])
    return binding_record(binding.role, indices[binding.role, binding.name])


def binding_record(role: str, index: int) -> Record:
    """Return a record of struct opwest_binding."""
    return Record(layout.BINDING, {"kind": Number(layout.BINDING_KIND.code(role)), "index": Number(index)})


class Shapes:
    """Collects the shapes of a model."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Definition] = {}

    def refer(self, shape: tuple[int, ...]) -> Reference | Null:
        """Return the address of a shape; NULL for a scalar."""
        if not shape:
            return NULL
        if shape not in self._known:
            self._known[shape] = numbers("shape_" + "_".join(map(str, shape)), layout.U32, shape)
        return Reference(self._known[shape].symbol)

    def define(self) -> list[Definition]:
        """Return the definitions of all shapes."""
        return list(self._known.values())


class Tensors:
    """Makes records of tensors in one part of the tables, and collects their quantizations."""

    def __init__(self, shapes: Shapes, part: str | None = None) -> None:
        self._shapes = shapes
        self._part = part
        self._known: dict[Quantization, int] = {}
        self._prefix = f"{part}_" if part else ""
        self._table = f"{self._prefix}quantizations"

    def record(
        self,
        name: str,
        type_: TensorType,
        direction: Direction,
        align: int,
        info: TensorInfo,
        *,
        scalar: bool = False,
        in_place: bool = False,
    ) -> Record:
        """Return the record of a tensor; `align` in bytes."""
        flags = (
            layout.TENSOR_FLAGS.bits(scalar=scalar, in_place=in_place)
            | (align.bit_length() - 1) << layout.TENSOR_ALIGN_SHIFT
        )
        return Record(
            layout.TENSOR,
            {
                "name": Text(name),
                "shape": self._shapes.refer(type_.shape),
                "quantization": self._refer(info.quantization),
                "size": Number(type_.size),
                "dtype": Number(type_.dtype.number),
                "rank": Number(len(type_.shape)),
                "direction": Number(layout.DIRECTION.code(direction)),
                "flags": Number(flags),
            },
        )

    def _refer(self, quantization: Quantization | None) -> Reference | Null:
        if quantization is None:
            return NULL
        return Reference(self._table, self._known.setdefault(quantization, len(self._known)))

    def define(self) -> list[Definition]:
        """Return the arrays of all quantizations, then the table of them."""
        arrays: list[Definition] = []
        rows: list[Value] = []
        for quantization, index in self._known.items():
            name = f"{self._prefix}quantization_{index}"
            scales = numbers(f"{name}_scales", layout.F32, quantization.scales)
            zero_points = numbers(f"{name}_zero_points", layout.I32, quantization.zero_points)
            arrays += [scales, zero_points]
            fields: dict[str, Value] = {
                "scales": Reference(scales.symbol),
                "zero_points": Reference(zero_points.symbol),
                "scale_count": Number(len(quantization.scales)),
                "zero_point_count": Number(len(quantization.zero_points)),
                "axis": Number(-1 if quantization.axis is None else quantization.axis),
            }
            rows.append(Record(layout.QUANTIZATION, fields))
        if not rows:
            return []
        table = Definition(self._table, Table(layout.QUANTIZATION, len(rows)), tuple(rows), part=self._part)
        return [*arrays, table]


def numbers(symbol: str, type_: Scalar, values: Iterable[int | float]) -> Definition:
    """Return a private table of numbers."""
    items = tuple(Number(number) for number in values)
    return Definition(symbol, Table(type_, len(items)), items)


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
