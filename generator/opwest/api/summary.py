# SPDX-License-Identifier: Apache-2.0
"""The summary of a valid model: tensors, memory, targets, stack, and the schedule of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import StackNeed, TargetBuild
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import Model
from opwest.plan.memory import Frames, MemoryPlan
from opwest.plan.problem import LAST_PHASE
from opwest.plan.schedule import Latency, Ownership
from opwest.render.devices import device_origin


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    type: str
    """Dtype, shape and pitch as text."""


@dataclass(frozen=True)
class State(Tensor):
    """A tensor whose content lasts from one run to the next."""

    pool: str | None
    next: str | None
    """The tensor whose content a run copies to the state at its end."""


@dataclass(frozen=True)
class View:
    """A contiguous part of another tensor; the offset in bytes."""

    name: str
    root: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Pool:
    """The plan of a memory pool."""

    name: str
    bytes: int
    limit_bytes: int | None
    """The size that the manifest declares."""
    lower_bound_bytes: int
    align: int
    offsets: Mapping[str, int]
    """The place of each buffer, bytes."""
    state_bytes: int
    frames: Frames | None
    """The memory of two frames, if the model streams."""


@dataclass(frozen=True)
class Device:
    """A device of a model, and the program that it runs."""

    name: str
    origin: str
    program: str | None


@dataclass(frozen=True)
class TargetSummary:
    """The files that are linked for a target."""

    name: str | None
    """None for a model that has only C sources."""
    objects: tuple[str, ...]
    sources: int
    libc: str
    """The C library against which undefined symbols of objects are checked."""
    unverified_abi: tuple[str, ...]
    unverified_conventions: tuple[str, ...]
    unverified_signatures: tuple[str, ...]
    """The operators whose signatures no header and no debug information shows."""


@dataclass(frozen=True)
class ScheduledStep:
    """A step, the launch of a step on a device, or a wait for launched steps."""

    kind: Literal["step", "launch", "wait"]
    device: str | None
    step: int | None = None
    operator: str = ""
    program: str | None = None
    load: bool = False
    """Whether the program is loaded before the step."""
    cycles: int | None = None
    line: int = 0
    live_bytes: Mapping[str, int] = field(default_factory=dict)
    """By pool."""
    steps: tuple[int, ...] = ()
    """The steps that a wait completes."""
    leave: int = 0
    """The number of steps that may be unfinished after a wait."""


@dataclass(frozen=True)
class ScheduleSummary:
    """The steps of a model in the order of execution, and a bound on the duration of a run."""

    rows: tuple[ScheduledStep, ...]
    holds: Mapping[str, Ownership]
    """The steps during which a device is owned."""
    latency: Latency
    reorder: bool
    """Whether steps were reordered as far as tensors allow."""


@dataclass(frozen=True)
class ModelSummary:
    """A valid model."""

    name: str
    variant: str | None
    label: str
    """The name in output for users, with the variant."""
    operators: tuple[str, ...]
    steps: tuple[str, ...]
    """The operator of each step."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    states: tuple[State, ...]
    views: tuple[View, ...]
    constants: int
    constant_bytes: int
    pools: tuple[Pool, ...]
    devices: tuple[Device, ...]
    variant_targets: tuple[str, ...]
    """The targets that use the variant."""
    targets: tuple[TargetSummary, ...]
    stack: tuple[StackNeed, ...]
    """One for each target; empty if the operators are compiled with the firmware."""
    schedule: ScheduleSummary | None = None


def summary_of(model: Model, plan: MemoryPlan, schedule: ScheduleSummary | None = None) -> ModelSummary:
    """Return the summary of a model."""
    return ModelSummary(
        name=model.name,
        variant=model.variant.name if model.variant else None,
        label=model.label,
        operators=tuple(operator.name for operator in model.operators),
        steps=tuple(step.operator.name for step in model.steps),
        inputs=tuple(_tensor(tensor.name, tensor.type) for tensor in model.inputs),
        outputs=tuple(_tensor(tensor.name, tensor.type) for tensor in model.outputs),
        states=tuple(
            State(
                *(state.name, state.type.dtype.name, state.type.shape, state.type.size, str(state.type)),
                plan.homes.get(state.name),
                state.next.shown if state.next else None,
            )
            for state in model.states
        ),
        views=tuple(View(view.name, view.root, view.offset, view.type.size) for view in model.views),
        constants=len(model.constants),
        constant_bytes=sum(len(constant.content) for constant in model.constants),
        pools=tuple(_pool(model, plan, name) for name in plan.pools),
        devices=tuple(
            Device(device.name, device_origin(device), device.program.name if device.program else None)
            for device in model.devices
        ),
        variant_targets=tuple(target.name for target in model.variant.targets) if model.variant else (),
        targets=tuple(map(_target, model.builds)),
        stack=model.stack,
        schedule=schedule,
    )


def _tensor(name: str, kind: TensorType) -> Tensor:
    return Tensor(name, kind.dtype.name, kind.shape, kind.size, str(kind))


def _pool(model: Model, plan: MemoryPlan, name: str) -> Pool:
    planned = plan.pools[name]
    return Pool(
        name,
        planned.size,
        next((pool.size for pool in model.pools if pool.name == name), None),
        planned.lower_bound,
        planned.align,
        dict(planned.offsets),
        sum(state.type.size for state in model.states if plan.homes.get(state.name) == name),
        plan.frames.get(name),
    )


def _target(build: TargetBuild) -> TargetSummary:
    return TargetSummary(
        build.target.name if build.target else None,
        tuple(item.origin for item in build.objects),
        sum(source.compiled for source in build.sources),
        build.libc,
        tuple(build.unverified),
        tuple(map(str, build.uncertain)),
        tuple(name for name, _ in build.unverified_signatures),
    )


def schedule_of(model: Model, plan: MemoryPlan, latency: Latency) -> ScheduleSummary:
    """Return the steps and waits of a model in the order of execution."""
    rows: list[ScheduledStep] = []
    schedule = plan.schedule
    for index, syncs in enumerate(schedule.syncs):
        rows += [ScheduledStep("wait", sync.device, steps=tuple(sync.steps), leave=sync.leave) for sync in syncs]
        if index < len(schedule.steps):
            step = schedule.steps[index]
            rows.append(
                ScheduledStep(
                    "launch" if step.operator.is_async else "step",
                    step.device,
                    index,
                    step.operator.name,
                    step.program.name if step.program else None,
                    index in schedule.loads,
                    step.cycles,
                    step.location.line,
                    _live_bytes(model, plan, index),
                )
            )
    return ScheduleSummary(tuple(rows), dict(schedule.holds), latency, model.reorder)


def _live_bytes(model: Model, plan: MemoryPlan, step: int) -> dict[str, int]:
    """Return the live bytes of every pool in a step, the most of its phases."""
    live = dict.fromkeys(plan.pools, 0)
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for buffer in model.planned:
        life = plan.schedule.lives[buffer.name]
        if life.first <= step <= life.last:
            begin = life.begin if life.first == step else 0
            end = life.end if life.last == step else LAST_PHASE
            spans.setdefault(plan.homes[buffer.name], []).append((begin, end, buffer.type.size))
    for pool, listed in spans.items():
        live[pool] = max(sum(size for first, end, size in listed if first <= at <= end) for at, _, _ in listed)
    return live
