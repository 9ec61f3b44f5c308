# SPDX-License-Identifier: Apache-2.0
"""The actions of a frame of a stream: those of `run`, with the progress of the older frame that each requires.

Two frames share states, and the writable state of operators. An action of the younger frame that conflicts with a
step of the older one waits until that step has ended; on the device of both it is enough that the step was launched
before. All other tensors exist once per frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Model, Step
from opwest.model.types.sections import Program
from opwest.plan.access import Access, access_of, conflict
from opwest.plan.memory import MemoryPlan, shared_by_frames
from opwest.plan.schedule import shared_line
from opwest.render.actions import Cache, Call, Copy, Measured, Wait, measured, uses

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
    gates = _Gates(model, listed).all()
    launches = _launch_numbers(listed)
    known = uses(model)
    loaded: dict[int, Program] = {}
    found = []
    for action, gate in zip(listed, gates, strict=True):
        match action:
            case Wait():
                kind: Kind = "wait"
                found.append(FrameAction(action, kind, min(action.steps), gate, launches[max(action.steps)]))
            case Call():
                kind = "launch" if action.launches else "call"
                launch = launches.get(action.step.index, 0)
                use = _use_of(action, loaded, known)
                found.append(FrameAction(action, kind, action.step.index, gate, launch, use))
            case Cache():
                found.append(FrameAction(action, "cache", action.step, gate))
            case Copy():
                found.append(FrameAction(action, "copy", len(model.steps), gate))
            case _ as never:
                assert_never(never)
    return found


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


def _launch_numbers(listed: Sequence[Measured]) -> dict[int, int]:
    """Return the number of each launch by its step, from 0."""
    steps = [action.step.index for action in listed if isinstance(action, Call) and action.launches]
    return {step: number for number, step in enumerate(steps)}


def launch_count(model: Model) -> int:
    """Return the number of launches of a frame."""
    return sum(step.operator.is_async and step.device is not None for step in model.steps)


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
        found = [0]
        for other in self._model.steps:
            if conflict(access, self._accesses[other.index]):
                in_queue = device is not None and device == other.device
                found.append((self._launched if in_queue else self._over)[other.index])
        found += [number for number, copied in self._copies if conflict(access, copied)]
        return max(found)

    def _copied(self, copy: Copy) -> Access:
        source = copy.source
        extent = (0, _END) if source.view is None else (source.offset, source.offset + copy.size)
        reads = {source.name: [extent]} if source.role == "buffer" else {}
        return self._of_shared(Access(reads, {copy.state: [(0, _END)]}))

    def _of_shared(self, access: Access) -> Access:
        reads, writes = (
            {name: ranges for name, ranges in part.items() if name in self._shared}
            for part in (access.reads, access.writes)
        )
        return Access(reads, writes)
