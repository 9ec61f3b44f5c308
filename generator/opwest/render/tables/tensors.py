# SPDX-License-Identifier: Apache-2.0
"""Records of tensors: equal shapes and quantizations are defined once."""

from __future__ import annotations

from hashlib import sha256

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import Binding, Direction, Interface, Model, Quantization, State, TensorInfo
from opwest.plan.memory import MemoryPlan
from opwest.render.tables import layout
from opwest.render.tables.layout import MEASURE, SLOT, STATUS, U8
from opwest.render.tables.types import (
    RUN,
    Definition,
    Field,
    FieldType,
    Index,
    Nested,
    Pointer,
    Reference,
    Scalar,
    Struct,
    StructValue,
    address,
    table,
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


def bound_value(binding: Binding, indices: Indices) -> StructValue:
    """Return the struct of a tensor or view that a step or a state refers to."""
    if binding.view is not None:
        return binding_value("view", indices["view", binding.view])
    return binding_value(binding.role, indices[binding.role, binding.name])


def binding_value(role: str, index: int) -> StructValue:
    """Return a value of struct opwest_binding."""
    return StructValue(layout.BINDING, kind=layout.BINDING_KIND.code(role), index=index)


Shapes = dict[tuple[int, ...], Definition]
"""The tables of all shapes of a model."""


class Tensors:
    """Makes structs of tensors in one part of the tables, and collects their quantizations."""

    def __init__(self, shapes: Shapes, part: str | None = None) -> None:
        self._shapes = shapes
        self._part = part
        self._known: dict[Quantization, int] = {}
        self._prefix = f"{part}_" if part else ""
        self._table = f"{self._prefix}quantizations"

    def value(
        self,
        name: str,
        type_: TensorType,
        direction: Direction,
        align: int,
        info: TensorInfo,
        *,
        scalar: bool = False,
        in_place: bool = False,
    ) -> StructValue:
        """Return the struct of a tensor; `align` in bytes."""
        aligned = (align.bit_length() - 1) << layout.TENSOR_FLAGS.shift
        return StructValue(
            layout.TENSOR,
            name=name,
            shape=self._shape(type_.shape),
            quantization=self._refer(info.quantization),
            size=type_.size,
            dtype=type_.dtype.number,
            rank=len(type_.shape),
            direction=layout.DIRECTION.code(direction),
            flags=layout.TENSOR_FLAGS.bits(scalar=scalar, in_place=in_place) | aligned,
        )

    def _shape(self, shape: tuple[int, ...]) -> Reference | None:
        if not shape:
            return None
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = Definition("shape_" + "_".join(map(str, shape)), layout.U32, shape)
        return Reference(known.symbol)

    def _refer(self, quantization: Quantization | None) -> Reference | None:
        if quantization is None:
            return None
        return Reference(self._table, self._known.setdefault(quantization, len(self._known)))

    def define(self) -> list[Definition]:
        """Return the arrays of all quantizations, then the table of them."""
        arrays: list[Definition] = []
        rows = []
        for quantization, index in self._known.items():
            name = f"{self._prefix}quantization_{index}"
            scales = Definition(f"{name}_scales", layout.F32, quantization.scales)
            zero_points = Definition(f"{name}_zero_points", layout.I32, quantization.zero_points)
            arrays += [scales, zero_points]
            row = StructValue(
                layout.QUANTIZATION,
                scales=Reference(scales.symbol),
                zero_points=Reference(zero_points.symbol),
                scale_count=len(quantization.scales),
                zero_point_count=len(quantization.zero_points),
                axis=-1 if quantization.axis is None else quantization.axis,
            )
            rows.append(row)
        return [*arrays, *table(self._table, layout.QUANTIZATION, rows, part=self._part)]


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
    rows = []
    for state in model.states:
        pool, offset = plan.place(state.name)
        row = StructValue(
            layout.STATE_TENSOR,
            initial=Reference(names.constant(state.initial)) if state.initial else None,
            initial_size=sizes[state.initial] if state.initial else 0,
            offset=offset,
            size=state.type.size,
            pool=pools[pool],
            buffer=indices["buffer", state.name],
            next=bound_value(state.next, indices) if state.next else binding_value("input", layout.NO_NEXT.value),
        )
        rows.append(row)
    tensors = table("state_tensors", layout.STATE_TENSOR, rows, part=RUN)
    identity = layout_hash(model.states)
    struct = StructValue(
        layout.STATE,
        tensors=address(tensors),
        count=len(rows),
        size=saved_size(model),
        layout_low=identity & 0xFFFFFFFF,
        layout_high=identity >> 32,
    )
    return [*tensors, Definition(names.function("state"), layout.STATE, struct, is_public=True, part=RUN)]


def layout_hash(states: tuple[State, ...]) -> int:
    """Return the first 64 bits of the SHA-256 of the names, types and order of the states."""
    text = "\n".join(f"{state.name}: {state.type}" for state in states)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little")
