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
from opwest.model.types.model import Model, TensorInfo
from opwest.objects.elf import machine_number
from opwest.plan.memory import MemoryPlan
from opwest.render.tables import layout
from opwest.render.tables.tensors import Shapes, Tensors, binding_indices, binding_value, bound_value, used_pools
from opwest.render.tables.types import Definition, Expression, Reference, Struct, StructValue, Value, address, table

TARGET_OF_C = "opwest_target"
"""The name of the target in the C source, which the build defines."""
_FLOAT_ABIS = {"soft": "soft", "softfp": "soft", "hard": "hard", "single": "single", "double": "double", "quad": "quad"}
"""The ABI of calls: softfp passes arguments as soft does."""


@dataclass(frozen=True, slots=True)
class OptionalPart:
    """A part with its own symbol `<model>_<name>`: an array if it has elements, else one struct."""

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
    names = CNames(model.name)
    scalars: dict[int, int] = {}
    bindings = _bindings(model, scalars)
    details = _details(model, plan, scalars)
    return [
        Definition(names.function("build"), layout.BUILD, _build(model, target), is_public=True, part="build"),
        *_constants(model, shapes),
        *_buffers(model, plan, shapes),
        *_places(model, plan),
        *_views(model, shapes),
        *bindings,
        Definition(names.function("details"), layout.DETAILS, details, is_public=True, part="details"),
    ]


def _table(model: Model, part: str, struct: Struct, rows: Sequence[StructValue]) -> list[Definition]:
    return table(CNames(model.name).function(part), struct, rows, is_public=True, part=part)


def _build(model: Model, target: Target | None) -> StructValue:
    own: dict[str, Value] = {
        "target": Expression(TARGET_OF_C),
        "machine": Expression("OPWEST_ABI_MACHINE"),
        "float_abi": Expression("OPWEST_ABI_FLOAT"),
        "pointer_size": Expression("OPWEST_ABI_POINTER_SIZE"),
        "big_endian": Expression("OPWEST_ABI_BIG_ENDIAN"),
    }
    if target is not None:
        own = {
            "target": target.name,
            "machine": machine_number(target.machine),
            "float_abi": layout.FLOAT_ABI.code(_FLOAT_ABIS.get(target.float_abi or "", "only")),
            "pointer_size": target.bits // 8,
            "big_endian": int(target.endian == "big"),
        }
    return StructValue(layout.BUILD, generator=__version__, model_hash=model_hash(model), **own)


def _constants(model: Model, shapes: Shapes) -> list[Definition]:
    names = CNames(model.name)
    tensors = Tensors(shapes, "constants")
    rows = [
        StructValue(
            layout.CONSTANT,
            tensor=tensors.value(c.name, c.type, "in", c.align, c.info),
            data=Reference(names.constant(c.name)),
        )
        for c in model.constants
    ]
    return [*tensors.define(), *_table(model, "constants", layout.CONSTANT, rows)]


def _buffers(model: Model, plan: MemoryPlan, shapes: Shapes) -> list[Definition]:
    tensors = Tensors(shapes, "buffers")
    pools = {pool.name: index for index, pool in enumerate(used_pools(model, plan))}
    infos = {constant.name: constant.info for constant in model.constants}
    infos |= {tensor.name: tensor.info for tensor in (*model.inputs, *model.outputs)}
    infos |= {state.name: state.info for state in model.states}
    rows = []
    for buffer in model.buffers:
        pool, offset = plan.place(buffer.name)
        life = plan.schedule.lives[buffer.name]
        info = infos.get(buffer.name, TensorInfo())
        row = StructValue(
            layout.BUFFER,
            tensor=tensors.value(buffer.name, buffer.type, "inout", buffer.align, info),
            offset=offset,
            pool=pools[pool],
            first_step=life.first,
            last_step=life.last,
            role=layout.BUFFER_ROLE.code(buffer.role),
        )
        rows.append(row)
    return [*tensors.define(), *_table(model, "buffers", layout.BUFFER, rows)]


def _places(model: Model, plan: MemoryPlan) -> list[Definition]:
    declared = {pool.name: pool for pool in model.pools}
    inner: list[Definition] = []
    rows = []
    for index, used in enumerate(used_pools(model, plan)):
        pool = declared[used.name]
        nodes = [StructValue(layout.REGION, board=board, node=str(tree)) for board, tree in pool.boards]
        regions = table(f"regions_{index}", layout.REGION, nodes, part="pool_places")
        reach = [n for n, device in enumerate(model.devices) if device.name in (pool.reachable_by or ())]
        devices = table(f"reach_{index}", layout.U16, reach, part="pool_places")
        inner += [*regions, *devices]
        is_open = pool.reachable_by is None
        row = StructValue(
            layout.POOL_PLACE,
            regions=address(regions),
            devices=address(devices),
            cache_line=pool.cache_line or 0,
            region_count=len(nodes),
            device_count=len(reach),
            flags=layout.POOL_FLAGS.bits(cpu=is_open or "cpu" in (pool.reachable_by or ()), all_devices=is_open),
        )
        rows.append(row)
    return [*inner, *_table(model, "pool_places", layout.POOL_PLACE, rows)]


def _views(model: Model, shapes: Shapes) -> list[Definition]:
    tensors = Tensors(shapes, "views")
    indices = binding_indices(model)
    roles: dict[str, str] = {}
    for role, name in indices:
        if role != "view":
            roles.setdefault(name, role)
    rows = []
    for view in model.views:
        role = roles[view.root]
        # The root has the alignment; offsets of views are multiples of what their operators require.
        align = view.type.dtype.size
        row = StructValue(
            layout.VIEW,
            tensor=tensors.value(view.name, view.type, "inout", align, TensorInfo()),
            base=binding_value(role, indices[role, view.root]),
            offset=view.offset,
        )
        rows.append(row)
    return [*tensors.define(), *_table(model, "views", layout.VIEW, rows)]


def _bindings(model: Model, scalars: dict[int, int]) -> list[Definition]:
    """Return the bindings of steps, and the bits of their scalars, of which `scalars` collects the indices."""
    indices = binding_indices(model)
    inner: list[Definition] = []
    rows = []
    for step in model.steps:
        items = []
        for binding in step.bindings:
            if binding.role == "scalar":
                items.append(binding_value("scalar", scalars.setdefault(_bits(binding.value), len(scalars))))
            else:
                items.append(bound_value(binding, indices))
        own = table(f"bindings_{step.index}", layout.BINDING, items, part="step_bindings")
        inner += own
        rows.append(StructValue(layout.STEP_BINDINGS, bindings=address(own), binding_count=len(items)))
    return [
        *inner,
        *table("scalars", layout.U64, scalars, part="details"),
        *_table(model, "step_bindings", layout.STEP_BINDINGS, rows),
    ]


def _bits(value: int | float) -> int:
    """Return the bits of a scalar: an int64_t, or a double."""
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d", value), "little")
    return int(value) & (1 << 64) - 1


def _details(model: Model, plan: MemoryPlan, scalars: dict[int, int]) -> StructValue:
    names = CNames(model.name)
    present = {part.name for part in optional_parts(model, plan)}
    parts: dict[str, Value] = {
        part: Reference(names.function(part)) if part in present else None
        for part in ("constants", "buffers", "pool_places", "step_bindings", "views")
    }
    return StructValue(
        layout.DETAILS,
        **parts,
        model=Reference(names.function("model")),
        build=Reference(names.function("build")),
        state=Reference(names.function("state")) if model.states else None,
        scalars=Reference("scalars") if scalars else None,
        constant_count=len(model.constants),
        buffer_count=len(model.buffers),
        pool_count=len(used_pools(model, plan)),
        step_count=len(model.steps),
        view_count=len(model.views),
        reserved=0,
        scalar_count=len(scalars),
    )
