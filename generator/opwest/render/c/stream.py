# SPDX-License-Identifier: Apache-2.0
"""Two frames at the same time: src/<model>_stream.c, for both back ends.

The actions of a frame are those of `run`, with the progress of the older frame that each requires. Two frames share
states, and the writable state of operators. An action of the younger frame that conflicts with a step of the older one
waits until that step has ended; on the device of both it is enough that the step was launched before. All other tensors
exist once per frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.model import Binding, Model, Step
from opwest.model.types.sections import STRUCT_LAUNCH, Program
from opwest.plan.access import Access, access_of, conflict, passes
from opwest.plan.memory import MemoryPlan, shared_by_frames
from opwest.plan.schedule import shared_line
from opwest.render.actions import Cache, Call, Copy, Measured, Wait, launch_count, measured, uses
from opwest.render.c.header import pool_rows
from opwest.render.c.run import action_row, offset_macros, offset_row
from opwest.render.literals import c_comment
from opwest.render.overlaps import pool_memory, table, tensor_memory
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import external_rows, heading, interface_rows

Kind = Literal["wait", "launch", "call", "cache", "copy"]
_END = 1 << 62


@dataclass(frozen=True, slots=True)
class FrameAction:
    """One action of a frame."""

    action: Measured
    kind: Kind
    step: int
    """The index of its step; for a wait the first step that it completes, for a copy the number of steps."""
    gate: int
    """The number of actions that the older frame must have performed."""
    launch: int = 0
    """The number of the launch, by position, that it makes or waits for."""
    use: int | None = None
    """The index of the device with the program of a call, in `uses`."""


def frame_actions(model: Model, plan: MemoryPlan) -> list[FrameAction]:
    """Return the actions of a frame in order. It acquires and releases no devices."""
    listed = measured(model, plan)
    launched = [action.step.index for action in listed if isinstance(action, Call) and action.launches]
    launches = {step: number for number, step in enumerate(launched)}
    known = uses(model)
    loaded: dict[int, Program] = {}
    frame = []
    for action, gate in zip(listed, _Gates(model, listed).all(), strict=True):
        match action:
            case Wait():
                item = FrameAction(action, "wait", min(action.steps), gate, launches[max(action.steps)])
            case Call():
                step = action.step.index
                kind: Kind = "launch" if action.launches else "call"
                use = _use_of(action, loaded, known)
                item = FrameAction(action, kind, step, gate, launches.get(step, 0), use)
            case Cache():
                item = FrameAction(action, "cache", action.step, gate)
            case Copy():
                item = FrameAction(action, "copy", len(model.steps), gate)
            case _ as never:
                assert_never(never)
        frame.append(item)
    return frame


def _use_of(call: Call, loaded: dict[int, Program], known: Sequence[tuple[int, Program | None]]) -> int | None:
    """Return the use of a call. `loaded` has the latest program of every device.

    A step without a program uses the loaded one. Here the other frame may have loaded another one, so the frame loads
    that of its own earlier step.
    """
    if call.index is None:
        return None
    program = loaded.get(call.index) if call.step.program is None else call.step.program
    if program is not None:
        loaded[call.index] = program
    return known.index((call.index, program))


class _Gates:
    """The gates of actions: `_over` has the ends of steps, as numbers of performed actions."""

    def __init__(self, model: Model, listed: Sequence[Measured]) -> None:
        self._model = model
        self._listed = listed
        self._shared = shared_by_frames(model)
        line = shared_line(model)
        self._accesses = {step.index: self._of_shared(access_of(step, line)) for step in model.steps}
        self._launched: dict[int, int] = {}
        """By step, the number of actions up to its call."""
        self._over: dict[int, int] = {}
        """By step, the number of actions up to its end, with the following maintenance."""
        for number, action in enumerate(listed, 1):
            if isinstance(action, Call):
                self._launched[action.step.index] = self._over[action.step.index] = number
            elif isinstance(action, Wait):
                self._over |= dict.fromkeys(action.steps, number)
            elif isinstance(action, Cache) and action.operation == "invalidate":
                self._over[action.step] = number
        self._effects = max((self._launched[s.index] for s in model.steps if s.operator.permits), default=0)
        self._copies = [
            (number, self._copied(action)) for number, action in enumerate(listed, 1) if isinstance(action, Copy)
        ]

    def all(self) -> list[int]:
        steps = {step.index: self._before(step) for step in self._model.steps}
        return [self._gate(action, steps) for action in self._listed]

    def _gate(self, action: Measured, steps: dict[int, int]) -> int:
        match action:
            case Call():
                return steps[action.step.index]
            case Cache():  # before a step, or after it: then the gate has been passed
                return steps[action.step]
            case Copy():
                return self._after(self._copied(action), None)
            case Wait():
                return 0
            case _ as never:
                assert_never(never)

    def _before(self, step: Step) -> int:
        """Return the gate of a step."""
        return max(self._after(self._accesses[step.index], step.device), self._effects * bool(step.operator.permits))

    def _after(self, access: Access, device: str | None) -> int:
        """Return the gate of an access by a device, or by the processor."""
        gates = [0]
        for other in self._model.steps:
            earlier = self._accesses[other.index]
            if conflict(access, earlier):
                in_queue = device is not None and device == other.device and not passes(access, earlier)
                gates.append((self._launched if in_queue else self._over)[other.index])
        gates += [number for number, copied in self._copies if conflict(access, copied)]
        return max(gates)

    def _copied(self, copy: Copy) -> Access:
        source = copy.source
        extent = (0, _END) if source.view is None else (source.offset, source.offset + copy.size)
        reads = {source.name: [extent]} if source.role == "buffer" else {}
        return self._of_shared(Access(reads, {copy.state: [(0, _END)]}, {}))

    def _of_shared(self, access: Access) -> Access:
        parts = (
            {name: ranges for name, ranges in part.items() if name in self._shared}
            for part in (access.reads, access.writes, access.values)
        )
        return Access(*parts)


_NO_STEP = "OPWEST_NO_STEP"
_NO_USE = "OPWEST_STREAM_NO_USE"


def render_stream(render: Renderer, model: Model, plan: MemoryPlan) -> dict[str, bytes]:
    """Return the source; nothing if the model does not stream."""
    if not model.streams:
        return {}
    names = CNames(model.name)
    offsets = offset_macros(model)
    shared = shared_by_frames(model)
    places = {
        b.name: f"{'pool' if b.name in shared else 'frame'}_{plan.place(b.name)[0]} + {offsets[b.name]}"
        for b in model.buffers
    }
    listed = frame_actions(model, plan)
    rows = [{**_row(names, places, model, item), "number": number} for number, item in enumerate(listed)]
    used = _used(model, [item.action for item in listed])
    tensors = interface_rows(model)
    pools = [
        {
            **pool,
            "stride": plan.frames[pool["name"]].stride,
            "shared": any(plan.place(name)[0] == pool["name"] for name in used["buffers"] & shared),
            "own": any(plan.place(name)[0] == pool["name"] for name in used["buffers"] - shared),
        }
        for pool in pool_rows(model, plan)
    ]
    return {
        f"src/{model.name}_stream.c": render(
            "models/model/src/model_stream.c",
            **heading(model),
            pools=pools,
            offsets=[offset_row(plan, offsets[b.name], b) for b in model.buffers],
            rows=rows,
            uses_inputs=used["inputs"],
            uses_outputs=used["outputs"],
            uses_devices=used["devices"],
            uses_workspace=any(pool["shared"] or pool["own"] for pool in pools) or used["launches"],
            uses_number=any(pool["own"] for pool in pools) or used["inputs"] or used["outputs"],
            launches=launch_count(model),
            placed=[
                {**tensor, "second": f"{_second(model, plan, tensor['name'])} + {offsets[tensor['name']]}"}
                for tensor in tensors
                if tensor["placed"]
            ],
            inputs=external_rows(tensors, "input"),
            outputs=external_rows(tensors, "output"),
            busy=model.checks.busy,
            **_overlaps(model, plan),
        )
    }


def _overlaps(model: Model, plan: MemoryPlan) -> dict[str, Any]:
    """Return the rows of the checks of buffers and of pools; empty ones if the manifest excludes them."""
    if not model.checks.buffers:
        return {"buffers": [], "buffer_sizes": [], "pool_rows": []}
    pools = [replace(pool, size=plan.frames[pool.name].size) for pool in pool_memory(model, plan)]
    own = [{"place": "stream", "size": "sizeof(*stream)"}, {"place": "state", "size": "sizeof(*state)"}]
    rows = [{"place": f"stream->workspace.{member_name(pool.name)}", "size": f"{pool.size}U"} for pool in pools]
    return {
        "buffers": [
            {
                "place": f"{memory.role}s->{member_name(memory.name)}",
                "size": f"{memory.size}U",
                "role": memory.role,
                "index": memory.index,
            }
            for memory in tensor_memory(model)
        ],
        "buffer_sizes": table(tensor_memory(model), pools),
        "pool_rows": [{**row, "others": [*rows[:index], *own]} for index, row in enumerate(rows)],
    }


def _second(model: Model, plan: MemoryPlan, name: str) -> str:
    """Return the memory of the second frame in the pool of a tensor."""
    pool = plan.place(name)[0]
    return f"stream->workspace.{member_name(pool)} + {plan.frames[pool].stride}U"


def _used(model: Model, listed: list[Measured]) -> dict[str, Any]:
    """Return what the calls use: buffers by name, structures of the caller, devices, launches."""
    bindings: list[Binding] = []
    buffers: set[str] = set()
    devices = launches = False
    for action in listed:
        if isinstance(action, Call):
            bindings += action.step.bindings
            launches |= action.step.operator.takes_launch
            devices |= action.step.operator.takes_device and action.step.operator.handle != STRUCT_LAUNCH
        elif isinstance(action, Copy):
            bindings.append(action.source)
            buffers.add(action.state)
        elif isinstance(action, Cache):
            bindings.append(action.binding)
    roles = {binding.role for binding in bindings}
    return {
        "buffers": buffers | {binding.name for binding in bindings if binding.role == "buffer"},
        "inputs": "input" in roles,
        "outputs": "output" in roles,
        "devices": devices,
        "launches": launches,
    }


def _row(names: CNames, places: dict[str, str], model: Model, item: FrameAction) -> dict[str, Any]:
    action = item.action
    row = action_row(names, places, action)
    device = None if isinstance(action, Copy) else action.index
    return {
        **row,
        "comment": _comment(row, action),
        "gate": item.gate,
        "step": f"{item.step}U" if item.step < len(model.steps) else _NO_STEP,
        "launch": item.launch,
        "use": _NO_USE if item.use is None else f"{item.use}U",
        "device": 0 if device is None else device,
        "kind": f"OPWEST_STREAM_{item.kind.upper()}",
        "kind_name": item.kind,
        "calls": not isinstance(action, Wait),
    }


def _comment(row: dict[str, Any], action: Measured) -> str:
    if isinstance(action, Cache):
        words = action.operation.replace("_", " ").capitalize()
        return c_comment(f"{words} {action.binding.shown} for {action.device}")
    comment: str = row["comment"]
    return comment
