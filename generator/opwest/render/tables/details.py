# SPDX-License-Identifier: Apache-2.0
"""The optional parts of the metadata: build, constants, buffers, places of pools, bindings of steps.

Each part has its own symbols and sections. Nothing else refers to them except `<model>_details`, so a linker drops the
parts that a program does not use.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from opwest import __version__
from opwest.base.frozen_dataclass import dataclass
from opwest.model.readers.fingerprint import model_hash
from opwest.model.types.builds import Target
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Binding, Model, Pool, TensorInfo
from opwest.objects.elf import machine_number
from opwest.plan.memory import MemoryPlan
from opwest.render.tables import layout
from opwest.render.tables.tensors import Shapes, Tensors, binding_indices, binding_record, bound_record, used_pools
from opwest.render.tables.types import (
    NULL,
    Definition,
    Expression,
    Null,
    Number,
    Record,
    Reference,
    Scalar,
    Struct,
    Table,
    Text,
    Value,
)

TARGET_OF_C = "opwest_target"
"""The name of the target in the C source, which the build defines."""
_FLOAT_ABIS = {"soft": "soft", "softfp": "soft", "hard": "hard", "single": "single", "double": "double", "quad": "quad"}
"""The ABI of calls: softfp passes arguments as soft does."""


@dataclass(frozen=True, slots=True)
class OptionalPart:
    """A part with its own symbol `<model>_<name>`: an array if it has elements, else one record."""

    name: str
    struct: Struct
    count: int | None
    title: str


def optional_parts(model: Model, plan: MemoryPlan) -> list[OptionalPart]:
    """Return the parts of a model, without empty tables."""
    parts = [
        OptionalPart("build", layout.BUILD, None, "The generator, the content and the ABI of the model."),
        OptionalPart("constants", layout.CONSTANT, len(model.constants), "The constants in flash."),
        OptionalPart("buffers", layout.BUFFER, len(model.buffers), "The tensors in the workspace."),
        OptionalPart(
            "pool_places", layout.POOL_PLACE, len(used_pools(model, plan)), "The regions and the reach of the pools."
        ),
        OptionalPart("step_bindings", layout.STEP_BINDINGS, len(model.steps), "The arguments of the steps."),
        OptionalPart("views", layout.VIEW, len(model.views), "The parts of tensors that steps use."),
        OptionalPart("details", layout.DETAILS, None, "All optional parts of the metadata: keeps each of them."),
    ]
    return [part for part in parts if part.count != 0]


def define_details(model: Model, plan: MemoryPlan, target: Target | None, shapes: Shapes) -> list[Definition]:
    """Return the definitions, each after those that it refers to. `target` is None for C."""
    return _Details(model, plan, target, shapes).define()


class _Details:
    def __init__(self, model: Model, plan: MemoryPlan, target: Target | None, shapes: Shapes) -> None:
        self.model = model
        self.plan = plan
        self.target = target
        self.shapes = shapes
        self.names = CNames(model.name)
        self.pools = used_pools(model, plan)
        self.scalars: dict[int, int] = {}

    def define(self) -> list[Definition]:
        """Return all definitions."""
        bindings = self._bindings()
        return [
            self._record("build", layout.BUILD, self._build()),
            *self._constants(),
            *self._buffers(),
            *self._places(),
            *self._views(),
            *bindings,
            self._record("details", layout.DETAILS, self._details()),
        ]

    def _record(self, part: str, layout_: Struct, fields: dict[str, Value]) -> Definition:
        record = Record(layout_, fields)
        return Definition(self.names.function(part), layout_, (record,), linkage="public", part=part)

    def _table(self, part: str, layout_: Struct, rows: Sequence[Value]) -> list[Definition]:
        if not rows:
            return []
        type_ = Table(layout_, len(rows))
        return [Definition(self.names.function(part), type_, tuple(rows), linkage="public", part=part)]

    def _private(self, part: str, symbol: str, element: Struct | Scalar, items: Sequence[Value]) -> list[Definition]:
        type_ = Table(element, len(items))
        return [Definition(symbol, type_, tuple(items), part=part)] if items else []

    def _build(self) -> dict[str, Value]:
        own: dict[str, Value] = {
            "target": Expression(TARGET_OF_C),
            "machine": Expression("OPWEST_ABI_MACHINE"),
            "float_abi": Expression("OPWEST_ABI_FLOAT"),
            "pointer_size": Expression("OPWEST_ABI_POINTER_SIZE"),
            "big_endian": Expression("OPWEST_ABI_BIG_ENDIAN"),
        }
        if self.target is not None:
            target = self.target
            own = {
                "target": Text(target.name),
                "machine": Number(machine_number(target.machine)),
                "float_abi": Number(layout.FLOAT_ABI.code(_FLOAT_ABIS.get(target.float_abi or "", "only"))),
                "pointer_size": Number(target.bits // 8),
                "big_endian": Number(int(target.endian == "big")),
            }
        return {"generator": Text(__version__), "model_hash": Text(model_hash(self.model)), **own}

    def _constants(self) -> list[Definition]:
        tensors = Tensors(self.shapes, "constants")
        rows: list[Value] = [
            Record(
                layout.CONSTANT,
                {
                    "tensor": tensors.record(c.name, c.type, "in", c.align, c.info),
                    "data": Reference(self.names.constant(c.name)),
                },
            )
            for c in self.model.constants
        ]
        return [*tensors.define(), *self._table("constants", layout.CONSTANT, rows)]

    def _buffers(self) -> list[Definition]:
        tensors = Tensors(self.shapes, "buffers")
        places = {pool.name: index for index, pool in enumerate(self.pools)}
        infos = {constant.name: constant.info for constant in self.model.constants}
        infos |= {tensor.name: tensor.info for tensor in (*self.model.inputs, *self.model.outputs)}
        infos |= {state.name: state.info for state in self.model.states}
        rows: list[Value] = []
        for buffer in self.model.buffers:
            pool, offset = self.plan.place(buffer.name)
            life = self.plan.schedule.lives[buffer.name]
            fields: dict[str, Value] = {
                "tensor": tensors.record(
                    buffer.name, buffer.type, "inout", buffer.align, infos.get(buffer.name, TensorInfo())
                ),
                "offset": Number(offset),
                "pool": Number(places[pool]),
                "first_step": Number(life.first),
                "last_step": Number(life.last),
                "role": Number(layout.BUFFER_ROLE.code(buffer.role)),
            }
            rows.append(Record(layout.BUFFER, fields))
        return [*tensors.define(), *self._table("buffers", layout.BUFFER, rows)]

    def _places(self) -> list[Definition]:
        declared = {pool.name: pool for pool in self.model.pools}
        inner: list[Definition] = []
        rows: list[Value] = []
        for index, used in enumerate(self.pools):
            pool = declared[used.name]
            regions = self._private("pool_places", f"regions_{index}", layout.REGION, _regions(pool))
            reach = [n for n, device in enumerate(self.model.devices) if device.name in (pool.reachable_by or ())]
            devices = self._private("pool_places", f"reach_{index}", layout.U16, [Number(n) for n in reach])
            inner += [*regions, *devices]
            is_open = pool.reachable_by is None
            flags = layout.POOL_FLAGS.bits(cpu=is_open or "cpu" in (pool.reachable_by or ()), all_devices=is_open)
            fields: dict[str, Value] = {
                "regions": _address(regions),
                "devices": _address(devices),
                "cache_line": Number(pool.cache_line or 0),
                "region_count": Number(len(pool.boards)),
                "device_count": Number(len(reach)),
                "flags": Number(flags),
            }
            rows.append(Record(layout.POOL_PLACE, fields))
        return [*inner, *self._table("pool_places", layout.POOL_PLACE, rows)]

    def _views(self) -> list[Definition]:
        tensors = Tensors(self.shapes, "views")
        indices = binding_indices(self.model)
        rows: list[Value] = []
        for view in self.model.views:
            role = next(role for role, name in indices if name == view.root and role != "view")
            # The root has the alignment; offsets of views are multiples of what their operators require.
            align = view.type.dtype.size
            fields: dict[str, Value] = {
                "tensor": tensors.record(view.name, view.type, "inout", align, TensorInfo()),
                "base": binding_record(role, indices[role, view.root]),
                "offset": Number(view.offset),
            }
            rows.append(Record(layout.VIEW, fields))
        return [*tensors.define(), *self._table("views", layout.VIEW, rows)]

    def _bindings(self) -> list[Definition]:
        indices = binding_indices(self.model)
        inner: list[Definition] = []
        rows: list[Value] = []
        for step in self.model.steps:
            items: list[Value] = []
            for binding in step.bindings:
                is_scalar = binding.role == "scalar"
                items.append(
                    binding_record("scalar", self._scalar(binding)) if is_scalar else bound_record(binding, indices)
                )
            own = self._private("step_bindings", f"bindings_{step.index}", layout.BINDING, items)
            inner += own
            rows.append(Record(layout.STEP_BINDINGS, {"bindings": _address(own), "binding_count": Number(len(items))}))
        scalars = [Number(bits) for bits in self.scalars]
        return [
            *inner,
            *self._private("details", "scalars", layout.U64, scalars),
            *self._table("step_bindings", layout.STEP_BINDINGS, rows),
        ]

    def _scalar(self, binding: Binding) -> int:
        """Return the index of a scalar's bits: an int64_t, or a double."""
        value = binding.value
        is_real = isinstance(value, float)
        bits = int.from_bytes(struct.pack("<d", value), "little") if is_real else int(value) & (1 << 64) - 1
        return self.scalars.setdefault(bits, len(self.scalars))

    def _details(self) -> dict[str, Value]:
        present = {part.name: part.count for part in optional_parts(self.model, self.plan)}
        parts = ("constants", "buffers", "pool_places", "step_bindings", "views")
        fields: dict[str, Value] = {
            part: Reference(self.names.function(part)) if part in present else NULL for part in parts
        }
        return fields | {
            "model": Reference(self.names.function("model")),
            "build": Reference(self.names.function("build")),
            "state": Reference(self.names.function("state")) if self.model.states else NULL,
            "scalars": Reference("scalars") if self.scalars else NULL,
            "constant_count": Number(len(self.model.constants)),
            "buffer_count": Number(len(self.model.buffers)),
            "pool_count": Number(len(self.pools)),
            "step_count": Number(len(self.model.steps)),
            "view_count": Number(len(self.model.views)),
            "reserved": Number(0),
            "scalar_count": Number(len(self.scalars)),
        }


def _regions(pool: Pool) -> list[Value]:
    return [Record(layout.REGION, {"board": Text(board), "node": Text(str(tree))}) for board, tree in pool.boards]


def _address(table: Sequence[Definition]) -> Reference | Null:
    return Reference(table[0].symbol) if table else NULL
