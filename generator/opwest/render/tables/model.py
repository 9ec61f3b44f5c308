# SPDX-License-Identifier: Apache-2.0
"""The points of `run` that profiling measures: the whole run, then each action."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import Target
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Argument, Direction, Interface, Model, Operator
from opwest.model.types.sections import STRUCT_DEVICE, STRUCT_LAUNCH, Device, Program
from opwest.plan.memory import MemoryPlan
from opwest.plan.schedule import Ownership
from opwest.render.actions import Call, Copy, Measured, Wait, measured, uses
from opwest.render.perfect_hash import perfect_hash
from opwest.render.tables import layout
from opwest.render.tables.details import define_details
from opwest.render.tables.layout import NO_DEVICE, NO_STEP
from opwest.render.tables.tensors import Shapes, Tensors, define_states, numbers, used_pools
from opwest.render.tables.types import (
    NULL,
    RUN,
    Definition,
    Null,
    Number,
    Record,
    Reference,
    Struct,
    Table,
    Text,
    Value,
)


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the table of points: struct opwest_point of the runtime."""

    kind: str
    name: str
    step: int = NO_STEP.value
    device: int = NO_DEVICE.value


def points(model: Model, plan: MemoryPlan) -> list[Point]:
    """Return all points: 0 is the whole run, n is the measured action n - 1."""
    return [Point("run", model.name), *(_point(model, action) for action in measured(model, plan))]


def _point(model: Model, action: Measured) -> Point:
    if isinstance(action, Wait):
        return Point("wait", action.device, action.steps[0], action.index)
    if isinstance(action, Call):
        step = action.step
        names = [device.name for device in model.devices]
        kind = "launch" if step.operator.is_async and step.device else "step"
        return Point(kind, step.operator.name, step.index, names.index(step.device) if step.device else NO_DEVICE.value)
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
class ModelRecords:
    """The constant tables of a model, in the order of their definition."""

    metadata: tuple[Definition, ...]
    details: tuple[Definition, ...]
    """The optional parts."""
    registry: tuple[Definition, ...]
    devices: tuple[Definition, ...]
    """The tables of open, run and close: programs, device table, device set. Empty without devices."""
    states: tuple[Definition, ...]
    """The table of open, run and reset. Empty without states."""
    points: Definition


def model_records(model: Model, plan: MemoryPlan, target: Target | None = None) -> ModelRecords:
    """Return the constant tables of a model. `target` is None for C, whose compiler defines the ABI."""
    shapes = Shapes()
    metadata = _Metadata(model, plan, shapes).define()
    details = define_details(model, plan, target, shapes)
    return ModelRecords(
        metadata=(*shapes.define(), *metadata),
        details=tuple(details),
        registry=tuple(_registry(model)),
        devices=tuple(_devices(model, plan)),
        states=tuple(define_states(model, plan)),
        points=_points(model, plan),
    )


def callable_by_name(operator: Operator) -> bool:
    """Whether opwest_call(), which passes a struct device or a launch, can call the operator."""
    return not operator.takes_device or operator.handle in (STRUCT_DEVICE, STRUCT_LAUNCH)


class _Metadata:
    """Collects the definitions."""

    def __init__(self, model: Model, plan: MemoryPlan, shapes: Shapes) -> None:
        self.model = model
        self.plan = plan
        self.names = CNames(model.name)
        self.shapes = shapes
        self.tensors = Tensors(shapes)

    def define(self) -> list[Definition]:
        """Return the definitions, each after those that it refers to."""
        model = self.model
        inputs, outputs = (
            self._interface("inputs", model.inputs, "in"),
            self._interface("outputs", model.outputs, "out"),
        )
        arguments = [_table(self.names.arguments(o.name), layout.TENSOR, self._arguments(o)) for o in model.operators]
        operators = Definition(
            self.names.function("operators"),
            Table(layout.OPERATOR, len(model.operators)),
            tuple(_operator(o, table) for o, table in zip(model.operators, arguments, strict=True)),
            linkage="public",
        )
        steps = _table("steps", layout.STEP, self._steps())
        pools = _table("pools", layout.POOL, self._pools())
        tables = [*inputs, *outputs, *(d for table in arguments for d in table), operators, *steps, *pools]
        return [
            *self.tensors.define(),
            *tables,
            self._model(_address(inputs), _address(outputs), _address(pools)),
        ]

    def _interface(self, role: str, tensors: Iterable[Interface], direction: Direction) -> list[Definition]:
        rows = [self.tensors.record(t.name, t.type, direction, t.align, t.info) for t in tensors]
        return _table(role, layout.TENSOR, rows)

    def _arguments(self, operator: Operator) -> list[Value]:
        shared = _in_place(operator)
        return [self._argument(argument, in_place=argument.name in shared) for argument in operator.args]

    def _argument(self, argument: Argument, *, in_place: bool) -> Record:
        return self.tensors.record(
            argument.name,
            argument.type,
            argument.direction,
            argument.align,
            argument.info,
            scalar=argument.scalar,
            in_place=in_place,
        )

    def _steps(self) -> list[Value]:
        operators = {operator.name: index for index, operator in enumerate(self.model.operators)}
        devices = {device.name: index for index, device in enumerate(self.model.devices)}
        return [
            Record(
                layout.STEP,
                {
                    "operator_index": Number(operators[step.operator.name]),
                    "device_index": Number(devices[step.device] if step.device else layout.NO_DEVICE.value),
                },
            )
            for step in self.model.steps
        ]

    def _pools(self) -> list[Value]:
        return [
            Record(layout.POOL, {"name": Text(pool.name), "size": Number(pool.size), "align": Number(pool.align)})
            for pool in used_pools(self.model, self.plan)
        ]

    def _model(self, inputs: Reference | Null, outputs: Reference | Null, pools: Reference | Null) -> Definition:
        model, names = self.model, self.names
        fields: dict[str, Value] = {
            "name": Text(model.name),
            "inputs": inputs,
            "outputs": outputs,
            "operators": Reference(names.function("operators")),
            "steps": Reference("steps"),
            "pools": pools,
            "devices": Reference(names.function("device_table")) if model.devices else NULL,
            "constant_size": Number(sum(len(c.content) for c in model.constants)),
            "version": Number(layout.METADATA_VERSION),
            "input_count": Number(len(model.inputs)),
            "output_count": Number(len(model.outputs)),
            "operator_count": Number(len(model.operators)),
            "step_count": Number(len(model.steps)),
            "pool_count": Number(len(used_pools(model, self.plan))),
            "device_count": Number(len(model.devices)),
            "flags": Number(layout.MODEL_FLAGS.bits(stateful=model.stateful)),
        }
        return Definition(names.function("model"), layout.MODEL, (Record(layout.MODEL, fields),), linkage="public")


def _in_place(operator: Operator) -> set[str]:
    """Return the arguments with OPWEST_TENSOR_IN_PLACE, which permits every pair of a result and another of them.

    If the manifest permits only some of these pairs, no argument has the flag.
    """
    pairs = {(argument.name, other) for argument in operator.args for other in argument.in_place}
    results, others = {result for result, _ in pairs}, {other for _, other in pairs}
    return results | others if len(pairs) == len(results) * len(others) else set()


def _operator(operator: Operator, arguments: Sequence[Definition]) -> Record:
    flags = layout.OPERATOR_FLAGS.bits(
        status=operator.returns_status,
        device=operator.takes_device,
        stateful="state" in operator.permits,
        launch=operator.takes_launch,
        **{"async": operator.is_async, **{effect: True for effect in operator.permits if effect != "state"}},
    )
    return Record(
        layout.OPERATOR,
        {
            "name": Text(operator.name),
            "description": Text(operator.description) if operator.description else NULL,
            "args": _address(arguments),
            "arg_count": Number(len(operator.args)),
            "flags": Number(flags),
        },
    )


_Requirement = tuple[str | None, str | None, Program | None]
"""The type, the name of the program, and the own program of an operator."""


def _requirement(operator: Operator) -> _Requirement:
    """Return what an operator requires of its device."""
    return operator.device_type, operator.device_program, operator.program


def _requirement_record(model: Model, requirement: _Requirement) -> Record:
    type_, program, own = requirement
    return Record(
        layout.REQUIREMENT,
        {
            "type": Text(type_) if type_ else NULL,
            "program": Text(program) if program else NULL,
            "own_program": _program(model, own),
            "call": Reference(DEVICE_CALL),
        },
    )


def _program(model: Model, program: Program | None) -> Reference | Null:
    """Return the address of a program in the table of all."""
    if program is None:
        return NULL
    table = CNames(model.name).function(_PROGRAMS)
    return Reference(table, [known.content for known in model.programs].index(program.content))


def _registry(model: Model) -> list[Definition]:
    names = CNames(model.name)
    table = perfect_hash([operator.name for operator in model.operators])
    requirements = {_requirement(o): None for o in model.operators if o.takes_device}
    places = {requirement: index for index, requirement in enumerate(requirements)}
    entries: list[Value] = []
    for index in table.order:
        operator = model.operators[index]
        adapter = Reference(names.adapter(operator.name)) if callable_by_name(operator) else NULL
        fields: dict[str, Value] = {
            "info": Reference(names.function("operators"), index),
            "adapter": adapter,
            "requirement": Reference(_REQUIREMENTS, places[_requirement(operator)]) if operator.takes_device else NULL,
        }
        entries.append(Record(layout.ENTRY, fields))
    fields = {
        "entries": Reference("entries"),
        "displacements": Reference("displacements"),
        "seed": Number(table.seed),
        "bucket_count": Number(len(table.displacements)),
        "count": Number(len(entries)),
    }
    record = Record(layout.REGISTRY, fields)
    return [
        *_table(_REQUIREMENTS, layout.REQUIREMENT, [_requirement_record(model, one) for one in requirements]),
        *_table("entries", layout.ENTRY, entries),
        numbers("displacements", layout.U16, table.displacements),
        Definition(names.function("registry"), layout.REGISTRY, (record,), linkage="public"),
    ]


def _devices(model: Model, plan: MemoryPlan) -> list[Definition]:
    if not model.devices:
        return []
    names = CNames(model.name)
    programs: list[Value] = [
        Record(
            layout.PROGRAM,
            {
                "name": Text(program.name),
                "data": Reference(names.program(program.content)),
                "size": Number(len(program.content)),
            },
        )
        for program in model.programs
    ]
    devices: list[Value] = [_device(model, device, plan.schedule.holds.get(device.name)) for device in model.devices]
    used: list[Value] = [
        Record(layout.DEVICE_USE, {"program": _program(model, program), "device": Number(device)})
        for device, program in uses(model)
    ]
    table = names.function("device_table")
    device_set = Record(
        layout.DEVICE_SET,
        {
            "model": Text(model.name),
            "devices": Reference(table),
            "uses": Reference(_USES) if used else NULL,
            "in_use": Reference(_IN_USE) if model.stateful else NULL,
            "count": Number(len(devices)),
            "use_count": Number(len(used)),
        },
    )
    # Public: the registry refers to programs of operators.
    listed = [
        Definition(names.function(_PROGRAMS), Table(layout.PROGRAM, len(programs)), tuple(programs), "public", RUN)
    ]
    return [
        *(listed if programs else []),
        Definition(table, Table(layout.DEVICE, len(devices)), tuple(devices), linkage="public", part=RUN),
        *_table(_USES, layout.DEVICE_USE, used, part=RUN),
        Definition(names.function("device_set"), layout.DEVICE_SET, (device_set,), linkage="public", part=RUN),
    ]


def _device(model: Model, device: Device, hold: Ownership | None) -> Record:
    return Record(
        layout.DEVICE,
        {
            "name": Text(device.name),
            "type": Text(device.type) if device.type else NULL,
            "program": _program(model, device.program),
            "timeout_ms": Number(device.timeout_ms),
            "own_timeout_ms": Number(device.own_timeout_ms),
            "first_step": Number(hold.first if hold else layout.NO_STEP.value),
            "last_step": Number(hold.last if hold else 0),
            "queue_depth": Number(device.queue_depth or 0),
            "flags": Number(_device_flags(device)),
        },
    )


def _device_flags(device: Device) -> int:
    return layout.DEVICE_FLAGS.bits(
        hooks=device.has_hooks,
        foreign=device.handle is not None,
        coherent=device.coherent,
        power_run=device.power == "run",
    )


def _points(model: Model, plan: MemoryPlan) -> Definition:
    rows = tuple(
        Record(
            layout.POINT,
            {
                "name": Text(point.name),
                "step": Number(point.step),
                "device": Number(point.device),
                "kind": Number(layout.POINT_KIND.code(point.kind)),
            },
        )
        for point in points(model, plan)
    )
    return Definition(CNames(model.name).function("points"), Table(layout.POINT, len(rows)), rows, linkage="public")


def _table(symbol: str, struct: Struct, rows: Sequence[Value], *, part: str | None = None) -> list[Definition]:
    """Return a private table; empty without rows."""
    return [Definition(symbol, Table(struct, len(rows)), tuple(rows), part=part)] if rows else []


def _address(table: Sequence[Definition]) -> Reference | Null:
    return Reference(table[0].symbol) if table else NULL
