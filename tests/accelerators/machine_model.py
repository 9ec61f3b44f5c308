# SPDX-License-Identifier: Apache-2.0
"""A symbolic machine: a CPU with a write-back cache, devices with queues, and memory whose bytes are tokens.

It executes the actions of a planned model and detects faults in them: a token that differs from that of sequential
execution, an access to bytes that a launched step uses, a tensor in memory that its user cannot reach, a step without
a place in its queue, a load of a program while a device has work.
Views are ranges of bytes of their tensors. States keep their tokens from run to run.
It implements the contract of the emitted code and is independent of the planning of schedules and memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from opwest.model.types.model import Argument, Binding, Model, Step
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Action, Cache, Call, Copy, Wait
from plan_checks import check, conflict, passes, shared_line

Token = Any
MODES = ("early", "late", "torn", "random")


class Memory:
    """Memory with a cache. `line` is None if the memory is not cached."""

    def __init__(self, name: str, size: int, line: int | None, rng: random.Random) -> None:
        self.name = name
        self.line = line
        self.rng = rng
        whole = -(-size // (line or 1)) * (line or 1)
        self.memory: list[Token] = [("never written", name, i) for i in range(whole)]
        self.cache: dict[int, list[Token]] = {}
        self.dirty: set[int] = set()

    def load(self, at: int, size: int, *, seen: bool) -> list[Token]:
        if self.line is None or not seen:
            return self.memory[at : at + size]
        return [self._fetched(i // self.line)[i % self.line] for i in range(at, at + size)]

    def store(self, at: int, values: list[Token], *, seen: bool) -> None:
        if self.line is None or not seen:
            self.memory[at : at + len(values)] = values
            return
        for i, value in enumerate(values, at):
            self._fetched(i // self.line)[i % self.line] = value
            self.dirty.add(i // self.line)

    def _fetched(self, line: int) -> list[Token]:
        if line not in self.cache:
            self.cache[line] = self.memory[line * self.line : (line + 1) * self.line]
        return self.cache[line]

    def _write_back(self, line: int) -> None:
        if line in self.dirty:
            self.memory[line * self.line : (line + 1) * self.line] = self.cache[line]
            self.dirty.discard(line)

    def chaos(self) -> None:
        """Do random cache operations: write lines back, drop clean ones, fetch any."""
        if self.line is None:
            return
        for line in range(len(self.memory) // self.line):
            luck = self.rng.random()
            if luck < 0.15:
                self._write_back(line)
                self.cache.pop(line, None)
            elif luck < 0.2:
                self._write_back(line)
            elif luck < 0.75:
                self._fetched(line)

    def maintain(self, operation: str, at: int, size: int) -> None:
        check(self.line is not None, f"{operation} in {self.name}, which is not cached")
        check(at % self.line == 0 and size % self.line == 0, f"{operation} of half a line in {self.name}")
        check(at + size <= len(self.memory), f"{operation} beyond {self.name}")
        for line in range(at // self.line, (at + size) // self.line):
            if operation != "invalidate":
                self._write_back(line)
            if operation != "flush":
                self.cache.pop(line, None)
                self.dirty.discard(line)


@dataclass(frozen=True)
class Place:
    region: str
    at: int
    size: int

    @property
    def bytes(self) -> set[tuple[str, int]]:
        return {(self.region, i) for i in range(self.at, self.at + self.size)}

    def part(self, binding: Binding, size: int) -> Place:
        check(binding.offset + size <= self.size, f"{binding.shown} leaves {binding.name}")
        return Place(self.region, self.at + binding.offset, size)


@dataclass
class Job:
    step: Step
    state: Token
    reads: set[tuple[str, int]]
    writes: set[tuple[str, int]]
    started: bool = False
    seen_inputs: list[Token] = field(default_factory=list)
    values: list[Token] = field(default_factory=list)
    """What the processor passed by value at the call."""


def compute(operator: str, state: Token, inputs: Iterable[Token], output: int, size: int) -> list[Token]:
    """Return the values that a step writes: tokens derived from all values read."""
    value = hash((operator, state, tuple(inputs), output))
    return [(value, i) for i in range(size)]


def first_content(model: Model) -> dict[str, list[Token]]:
    constants = {c.name: list(c.content) for c in model.constants}
    found = {}
    for state in model.states:
        period = constants[state.initial] if state.initial else [0]
        check(state.type.size % len(period) == 0, f"{state.name} is no multiple of its first content")
        found[state.name] = period * (state.type.size // len(period))
    return found


def sequential(model: Model, steps: Iterable[Step], inputs, state: int, lasting) -> dict[str, list[Token]]:
    """Return all tensors after sequential execution of the steps, each tensor in separate memory.

    `lasting` contains the states before the run; those of the result are the states after it.
    """
    tensors = {c.name: list(c.content) for c in model.constants} | {k: list(v) for k, v in inputs.items()}
    tensors |= {name: list(values) for name, values in lasting.items()}
    for item in (*model.buffers, *model.outputs):
        tensors.setdefault(item.name, [("no value", item.name)] * item.type.size)
    for step in steps:
        if step.operator.stateful:
            state += 1
        read = []
        pairs = list(zip(step.operator.args, step.bindings, strict=True))
        for argument, binding in sorted(pairs, key=lambda pair: not pair[0].scalar):  # values first
            if argument.direction in ("in", "inout"):
                read += tensors[binding.name][_slice(argument, binding)]
        for number, (argument, binding) in enumerate(zip(step.operator.args, step.bindings, strict=True)):
            if argument.direction in ("out", "inout"):
                kept = state if step.operator.stateful else None
                values = compute(step.operator.name, kept, read, number, argument.type.size)
                tensors[binding.name][_slice(argument, binding)] = values
    for kept_state in model.states:
        if kept_state.next:
            begin = kept_state.next.offset
            tensors[kept_state.name] = tensors[kept_state.next.name][begin : begin + kept_state.type.size]
    return tensors


def _content(model: Model, constant: str) -> bytes:
    return next(c.content for c in model.constants if c.name == constant)


def _slice(argument: Argument, binding: Binding) -> slice:
    return slice(binding.offset, binding.offset + argument.type.size)


class Machine:
    def __init__(self, model: Model, plan: MemoryPlan, mode: str, seed: int) -> None:
        self.model, self.plan, self.mode = model, plan, mode
        self.rng = random.Random(seed)
        self.places: dict[str, Place] = {}
        self.regions: dict[str, Memory] = {}
        self.reach = {pool.name: pool.reachable_by for pool in model.pools}
        self.coherent = {device.name: device.coherent for device in model.devices} | {"cpu": True}
        cached = {pool.name: pool.cache_line for pool in model.pools}
        for name, pool in plan.pools.items():
            self.regions[name] = Memory(name, pool.size, cached[name], self.rng)
        for buffer in model.buffers:
            pool, at = plan.place(buffer.name)
            self.places[buffer.name] = Place(pool, at, buffer.type.size)
            check(at % buffer.align == 0, f"{buffer.name} is at {at} and not aligned to {buffer.align}")
            check(at + buffer.type.size <= plan.pools[pool].size, f"{buffer.name} leaves its pool")
        external = max((line for line in cached.values() if line), default=None)
        for tensor in (*model.inputs, *model.outputs):
            if not tensor.placed:
                touched = any(not self.coherent[agent] for agent in tensor.agents)
                line = external if touched else None
                check(line is None or tensor.align % line == 0, f"{tensor.name} is not aligned to lines")
                self.regions[tensor.name] = Memory(tensor.name, tensor.type.size, line, self.rng)
                self.places[tensor.name] = Place(tensor.name, 0, tensor.type.size)
        self.queues: dict[str, list[Job]] = {device.name: [] for device in model.devices}
        self.flying: dict[str, list[Job]] = {device.name: [] for device in model.devices}
        self.state = 0
        self.rules = {device.name: device for device in model.devices}
        self.loaded: dict[str, str | None] = {}

    def open(self) -> None:
        """Copy pinned constants and set the first content of states, as <model>_open() does."""
        for buffer in self.model.buffers:
            if buffer.role == "constant":
                place = self.places[buffer.name]
                region = self.regions[place.region]
                self._set(buffer.name, list(_content(self.model, buffer.name)))
                if region.line and buffer.incoherent:
                    region.maintain("flush", place.at, -(-place.size // region.line) * region.line)
        for name, values in first_content(self.model).items():
            self._set(name, values)

    def run(self, actions: list[Action], inputs: dict[str, list[Token]]) -> dict[str, list[Token]]:
        for name, values in inputs.items():
            self._set(name, values)
        self.loaded = {}  # another owner may have loaded any program
        for number, action in enumerate(actions):
            self._between()
            if isinstance(action, Call):
                self._call(action)
            elif isinstance(action, Wait):
                self._check_wait_is_late(action, actions[number + 1 :])
                self._wait(action)
            elif isinstance(action, Copy):
                self._copy(action)
            elif isinstance(action, Cache):
                self._maintain(action)
        check(not any(self.flying.values()), "the run ends and a launched step was not waited for")
        self._between()
        return {t.name: self._read(self.places[t.name], "cpu") for t in (*self.model.outputs, *self.model.states)}

    def _set(self, name: str, values: list[Token]) -> None:
        self._store(self.places[name], "cpu", values)

    def _read(self, place: Place, agent: str) -> list[Token]:
        return self.regions[place.region].load(place.at, place.size, seen=self.coherent[agent])

    def _store(self, place: Place, agent: str, values: list[Token]) -> None:
        self.regions[place.region].store(place.at, values, seen=self.coherent[agent])

    def _between(self) -> None:
        """Let devices and the cache make progress at random."""
        for region in self.regions.values():
            region.chaos()
        for device, queue in self.queues.items():
            if queue and self.mode == "torn":
                self._start(device, queue[0])
            while queue and (self.mode == "early" or (self.mode == "random" and self.rng.random() < 0.4)):
                if self.mode == "random" and self.rng.random() < 0.5:
                    self._start(device, queue[0])
                    break
                self._finish(device, queue.pop(0))

    def _drain(self, device: str, leave: int = 0) -> None:
        while len(self.queues[device]) > leave:
            self._finish(device, self.queues[device].pop(0))
            for region in self.regions.values():
                region.chaos()

    def _call(self, action: Call) -> None:
        step = action.step
        agent = step.device or "cpu"
        job = self._job(step)
        self._check_apart(f"step {step.index}", agent, job.reads, job.writes)
        if step.device:
            self._load(step)
            depth = self.rules[agent].queue_depth
            check(depth is None or len(self.flying[agent]) < depth, f"step {step.index} finds no place in its queue")
        if step.operator.is_async:
            check(step.device is not None, "a step of the CPU is launched")
            self.flying[agent].append(job)
            self.queues[agent].append(job)
            return
        if step.device:
            self._drain(agent)
        self._finish(agent, job)

    def _load(self, step: Step) -> None:
        needs = self._replaces(step)
        check((step.index in self.plan.schedule.loads) == needs, f"the load for step {step.index} is wrong")
        if needs and step.program:
            if self.rules[step.device].switching != "free":
                check(not self.flying[step.device], f"{step.device} has work at the load for step {step.index}")
            self.loaded[step.device] = step.program.name

    def _replaces(self, step: Step) -> bool:
        return step.program is not None and self.loaded.get(step.device or "") != step.program.name

    def _check_apart(self, what: str, agent: str, reads: set[tuple[str, int]], writes: set[tuple[str, int]]) -> None:
        """Check that an access does not touch what other agents' launched steps use."""
        for device, flying in self.flying.items():
            for other in flying if device != agent else ():
                clash = writes & (other.reads | other.writes) or reads & other.writes
                check(not clash, f"{what} touches what launched step {other.step.index} uses")

    def _copy(self, action: Copy) -> None:
        state, source = self.places[action.state], self.places[action.source.name].part(action.source, action.size)
        check(action.size == state.size, f"{action.state} is copied in part")
        self._check_apart(f"the copy to {action.state}", "cpu", source.bytes, state.bytes)
        self._store(state, "cpu", self._read(source, "cpu"))

    def _wait(self, action: Wait) -> None:
        check(self.model.devices[action.index].name == action.device, "the device's index is wrong")
        flying = self.flying[action.device]
        ended = len(flying) - action.leave
        listed = tuple(job.step.index for job in flying[:ended])
        check(listed == action.steps and listed, f"{action.device} is waited for with steps {action.steps}: {listed}")
        self._drain(action.device, action.leave)
        self.flying[action.device] = flying[ended:]

    def _check_wait_is_late(self, action: Wait, later: list[Action]) -> None:
        """`run` waits for a device only if the next step requires it, or at the end."""
        call = next((other for other in later if isinstance(other, Call)), None)
        if call is None:
            return
        if call.step.device == action.device:
            self._check_own_wait(action, call.step)
            return
        check(action.leave == 0, f"step {call.step.index} waits for a part of what it needs")
        line = shared_line(self.model)
        needed = any(conflict(call.step, job.step, line, launched=True) for job in self.flying[action.device])
        check(needed, f"step {call.step.index} does not need to wait for {action.device}")

    def _check_own_wait(self, action: Wait, step: Step) -> None:
        """A step waits for its own device only for a place in the queue, for a load, or for a value."""
        device = self.rules[action.device]
        line = shared_line(self.model)
        flying = self.flying[action.device]
        writers = [number for number, job in enumerate(flying) if passes(step, job.step, line)]
        if writers and action.leave + writers[-1] + 1 == len(flying):
            return
        if self._replaces(step) and device.switching != "free":
            check(action.leave == 0, f"step {step.index} loads its program and leaves work")
            return
        full = device.queue_depth is not None and len(self.flying[action.device]) >= device.queue_depth
        check(full, f"step {step.index} waits for its own device")
        check(action.leave + 1 == device.queue_depth, f"step {step.index} waits for more than one place")

    def _maintain(self, action: Cache) -> None:
        check(not self.coherent[action.device], f"maintenance for {action.device}, which sees the cache")
        check(self.model.devices[action.index].name == action.device, "the device's index is wrong")
        place = self.places[action.binding.name]
        self.regions[place.region].maintain(action.operation, place.at + action.start, action.size)

    def _job(self, step: Step) -> Job:
        agent = step.device or "cpu"
        reads, writes = set(), set()
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            whole = self.places.get(binding.name) if binding.role != "constant" else None
            if whole is None:
                continue
            place = whole.part(binding, argument.type.size)
            reach = self.reach.get(place.region)
            user = "cpu" if argument.scalar else agent
            check(reach is None or user in reach, f"{user} cannot reach {binding.name} in {place.region}")
            if argument.scalar:
                self._check_apart(f"a value of step {step.index}", "cpu", place.bytes, set())
            elif argument.direction in ("in", "inout"):
                reads |= place.bytes
            if argument.direction != "in":
                writes |= place.bytes
        if step.operator.stateful:
            self.state += 1
        values = self._inputs("cpu", step, values=True)
        return Job(step, self.state if step.operator.stateful else None, reads, writes, values=values)

    def _inputs(self, agent: str, step: Step, *, values: bool = False) -> list[Token]:
        found: list[Token] = []
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            if argument.direction in ("in", "inout") and argument.scalar == values:
                if binding.role == "constant":
                    found += _content(self.model, binding.name)[_slice(argument, binding)]
                else:
                    found += self._read(self.places[binding.name].part(binding, argument.type.size), agent)
        return found

    def _write(self, agent: str, binding: Binding, values: list[Token]) -> None:
        self._store(self.places[binding.name].part(binding, len(values)), agent, values)

    def _start(self, agent: str, job: Job) -> None:
        """Begin a step: its results are undefined until its end."""
        if job.started:
            return
        job.started = True
        job.seen_inputs = self._inputs(agent, job.step)
        for argument, binding in zip(job.step.operator.args, job.step.bindings, strict=True):
            if argument.direction in ("out", "scratch"):
                garbage = [("garbage", job.step.index, self.rng.random())] * argument.type.size
                self._write(agent, binding, garbage)

    def _finish(self, agent: str, job: Job) -> None:
        self._start(agent, job)
        inputs = self._inputs(agent, job.step)
        check(inputs == job.seen_inputs, f"the inputs of step {job.step.index} change while it runs")
        operator = job.step.operator
        for number, (argument, binding) in enumerate(zip(operator.args, job.step.bindings, strict=True)):
            if argument.direction in ("out", "inout"):
                read = [*job.values, *inputs]
                self._write(agent, binding, compute(operator.name, job.state, read, number, argument.type.size))
