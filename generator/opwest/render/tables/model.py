# SPDX-License-Identifier: Apache-2.0
"""The constant tables of a model: metadata, registry, devices, and the points of `run` that profiling measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import Target
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Direction, Interface, Model, Operator
from opwest.model.types.sections import STRUCT_DEVICE, STRUCT_LAUNCH, Device, Program
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Call, Copy, Measured, Wait, measured, uses
from opwest.render.perfect_hash import perfect_hash
from opwest.render.tables import layout
from opwest.render.tables.details import define_details
from opwest.render.tables.layout import NO_DEVICE, NO_STEP
from opwest.render.tables.tensors import Shapes, Tensors, define_states, used_pools
from opwest.render.tables.types import RUN, Definition, Reference, StructValue, address, table


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the table of points: struct opwest_point of the runtime."""

    kind: str
    name: str
    step: int = NO_STEP.value
    device: int = NO_DEVICE.value


def points(model: Model, plan: MemoryPlan) -> list[Point]:
    """Return all points: 0 is the whole run, n is the measured action n - 1."""
    devices = {device.name: index for index, device in enumerate(model.devices)}
    return [Point("run", model.name), *(_point(model, devices, action) for action in measured(model, plan))]


def _point(model: Model, devices: Mapping[str, int], action: Measured) -> Point:
    if isinstance(action, Wait):
        return Point("wait", action.device, action.steps[0], action.index)
    if isinstance(action, Call):
        step = action.step
        kind = "launch" if step.operator.is_async and step.device else "step"
        device = devices[step.device] if step.device else NO_DEVICE.value
        return Point(kind, step.operator.name, step.index, device)
    if isinstance(action, Copy):
        return Point("copy", action.state)
    return Point("cache", model.steps[action.step].operator.name, action.step, action.index)


_PROGRAMS = "programs"
_USES = "device_uses"
_IN_USE = "in_use"
"""The flag of a stateful model, in the same file."""
_REQUIREMENTS = "requirements"
DEVICE_CALL = "opwest_call_on_device"
"""The function of the runtime that calls operators on devices: <opwest/device_calls.h>."""


@dataclass(frozen=True, slots=True)
class ModelTables:
    """The constant tables of a model, in the order of their definition."""

    metadata: list[Definition]
    details: list[Definition]
    """The optional parts."""
    registry: list[Definition]
    devices: list[Definition]
    """The tables of open, run and close: programs, device table, device set. Empty without devices."""
    states: list[Definition]
    """The table of open, run and reset. Empty without states."""
    points: Definition


def model_tables(model: Model, plan: MemoryPlan, target: Target | None = None) -> ModelTables:
    """Return the constant tables of a model. `target` is None for C, whose compiler defines the ABI."""
    shapes: Shapes = {}
    metadata = _metadata(model, plan, shapes)
    details = define_details(model, plan, target, shapes)
    return ModelTables(
        metadata=[*shapes.values(), *metadata],
        details=details,
        registry=_registry(model),
        devices=_devices(model, plan),
        states=define_states(model, plan),
        points=_points(model, plan),
    )


def callable_by_name(operator: Operator) -> bool:
    """Whether opwest_call(), which passes a struct device or a launch, can call the operator."""
    return not operator.takes_device or operator.handle in (STRUCT_DEVICE, STRUCT_LAUNCH)


def _metadata(model: Model, plan: MemoryPlan, shapes: Shapes) -> list[Definition]:
    """Return the definitions, each after those that it refers to."""
    names = CNames(model.name)
    tensors = Tensors(shapes)
    inputs = _interface(tensors, "inputs", model.inputs, "in")
    outputs = _interface(tensors, "outputs", model.outputs, "out")
    arguments = [table(names.arguments(o.name), layout.TENSOR, _arguments(tensors, o)) for o in model.operators]
    operators = [_operator(o, address(own)) for o, own in zip(model.operators, arguments, strict=True)]
    pools = [
        StructValue(layout.POOL, name=pool.name, size=pool.size, align=pool.align) for pool in used_pools(model, plan)
    ]
    pool_table = table("pools", layout.POOL, pools)
    struct = StructValue(
        layout.MODEL,
        name=model.name,
        inputs=address(inputs),
        outputs=address(outputs),
        operators=Reference(names.function("operators")),
        steps=Reference("steps"),
        pools=address(pool_table),
        devices=Reference(names.function("device_table")) if model.devices else None,
        constant_size=sum(len(c.content) for c in model.constants),
        version=layout.METADATA_VERSION,
        input_count=len(model.inputs),
        output_count=len(model.outputs),
        operator_count=len(model.operators),
        step_count=len(model.steps),
        pool_count=len(pools),
        device_count=len(model.devices),
        flags=layout.MODEL_FLAGS.bits(stateful=model.stateful),
    )
    return [
        *tensors.define(),
        *inputs,
        *outputs,
        *(definition for own in arguments for definition in own),
        Definition(names.function("operators"), layout.OPERATOR, tuple(operators), is_public=True),
        *table("steps", layout.STEP, _steps(model)),
        *pool_table,
        Definition(names.function("model"), layout.MODEL, struct, is_public=True),
    ]


def _interface(tensors: Tensors, role: str, listed: Iterable[Interface], direction: Direction) -> list[Definition]:
    return table(role, layout.TENSOR, [tensors.value(t.name, t.type, direction, t.align, t.info) for t in listed])


def _arguments(tensors: Tensors, operator: Operator) -> list[StructValue]:
    shared = _in_place(operator)
    return [
        tensors.value(a.name, a.type, a.direction, a.align, a.info, scalar=a.scalar, in_place=a.name in shared)
        for a in operator.args
    ]


def _steps(model: Model) -> list[StructValue]:
    operators = {operator.name: index for index, operator in enumerate(model.operators)}
    devices = {device.name: index for index, device in enumerate(model.devices)}
    return [
        StructValue(
            layout.STEP,
            operator_index=operators[step.operator.name],
            device_index=devices[step.device] if step.device else NO_DEVICE.value,
        )
        for step in model.steps
    ]


def _in_place(operator: Operator) -> set[str]:
    """Return the arguments with OPWEST_TENSOR_IN_PLACE, which permits every pair of a result and another of them.

    If the manifest permits only some of these pairs, no argument has the flag.
    """
    pairs = {(argument.name, other) for argument in operator.args for other in argument.in_place}
    results, others = {result for result, _ in pairs}, {other for _, other in pairs}
    return results | others if len(pairs) == len(results) * len(others) else set()


def _operator(operator: Operator, arguments: Reference | None) -> StructValue:
    flags = layout.OPERATOR_FLAGS.bits(
        status=operator.returns_status,
        device=operator.takes_device,
        stateful="state" in operator.permits,
        launch=operator.takes_launch,
        **{"async": operator.is_async, **{effect: True for effect in operator.permits if effect != "state"}},
    )
    return StructValue(
        layout.OPERATOR,
        name=operator.name,
        description=operator.description or None,
        args=arguments,
        arg_count=len(operator.args),
        flags=flags,
    )


_Requirement = tuple[str | None, str | None, Program | None]


def _requirement(operator: Operator) -> _Requirement:
    """Return what an operator requires of its device: the type, the name of the program, the operator's own program."""
    return operator.device_type, operator.device_program, operator.program


class _Programs:
    """The places of programs in the table of all."""

    def __init__(self, model: Model) -> None:
        self._table = CNames(model.name).function(_PROGRAMS)
        self._places = {program.content: place for place, program in enumerate(model.programs)}

    def reference(self, program: Program | None) -> Reference | None:
        """Return the address of a program."""
        return None if program is None else Reference(self._table, self._places[program.content])


def _registry(model: Model) -> list[Definition]:
    names = CNames(model.name)
    hashed = perfect_hash([operator.name for operator in model.operators])
    programs = _Programs(model)
    requirements: dict[_Requirement, int] = {}
    for operator in model.operators:
        if operator.takes_device:
            requirements.setdefault(_requirement(operator), len(requirements))
    requirement_rows = [
        StructValue(
            layout.REQUIREMENT,
            type=type_ or None,
            program=program or None,
            own_program=programs.reference(own),
            call=Reference(DEVICE_CALL),
        )
        for type_, program, own in requirements
    ]
    entries = []
    for index in hashed.order:
        operator = model.operators[index]
        requirement = None
        if operator.takes_device:
            requirement = Reference(_REQUIREMENTS, requirements[_requirement(operator)])
        entry = StructValue(
            layout.ENTRY,
            info=Reference(names.function("operators"), index),
            adapter=Reference(names.adapter(operator.name)) if callable_by_name(operator) else None,
            requirement=requirement,
        )
        entries.append(entry)
    struct = StructValue(
        layout.REGISTRY,
        entries=Reference("entries"),
        displacements=Reference("displacements"),
        seed=hashed.seed,
        bucket_count=len(hashed.displacements),
        count=len(entries),
    )
    return [
        *table(_REQUIREMENTS, layout.REQUIREMENT, requirement_rows),
        *table("entries", layout.ENTRY, entries),
        Definition("displacements", layout.U16, hashed.displacements),
        Definition(names.function("registry"), layout.REGISTRY, struct, is_public=True),
    ]


def _devices(model: Model, plan: MemoryPlan) -> list[Definition]:
    if not model.devices:
        return []
    names = CNames(model.name)
    places = _Programs(model)
    programs = [
        StructValue(layout.PROGRAM, name=p.name, data=Reference(names.program(p.content)), size=len(p.content))
        for p in model.programs
    ]
    used = [
        StructValue(layout.DEVICE_USE, program=places.reference(program), device=device)
        for device, program in uses(model)
    ]
    use_table = table(_USES, layout.DEVICE_USE, used, part=RUN)
    devices = names.function("device_table")
    device_set = StructValue(
        layout.DEVICE_SET,
        model=model.name,
        devices=Reference(devices),
        uses=address(use_table),
        in_use=Reference(_IN_USE) if model.stateful else None,
        count=len(model.devices),
        use_count=len(used),
    )
    return [
        # Public: the registry refers to programs of operators.
        *table(names.function(_PROGRAMS), layout.PROGRAM, programs, is_public=True, part=RUN),
        *table(devices, layout.DEVICE, (_device(places, plan, d) for d in model.devices), is_public=True, part=RUN),
        *use_table,
        Definition(names.function("device_set"), layout.DEVICE_SET, device_set, is_public=True, part=RUN),
    ]


def _device(programs: _Programs, plan: MemoryPlan, device: Device) -> StructValue:
    hold = plan.schedule.holds.get(device.name)
    flags = layout.DEVICE_FLAGS.bits(
        hooks=device.has_hooks,
        foreign=device.handle is not None,
        coherent=device.coherent,
        power_run=device.power == "run",
    )
    return StructValue(
        layout.DEVICE,
        name=device.name,
        type=device.type or None,
        program=programs.reference(device.program),
        timeout_ms=device.timeout_ms,
        own_timeout_ms=device.own_timeout_ms,
        first_step=hold.first if hold else NO_STEP.value,
        last_step=hold.last if hold else 0,
        queue_depth=device.queue_depth or 0,
        flags=flags,
    )


def _points(model: Model, plan: MemoryPlan) -> Definition:
    rows = [
        StructValue(layout.POINT, name=p.name, step=p.step, device=p.device, kind=layout.POINT_KIND.code(p.kind))
        for p in points(model, plan)
    ]
    return Definition(CNames(model.name).function("points"), layout.POINT, tuple(rows), is_public=True)
