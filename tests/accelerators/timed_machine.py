# SPDX-License-Identifier: Apache-2.0
"""A machine with a clock: a processor and devices with queues, which advance by one cycle at a time.

It executes the schedule of a model with given durations and checks the rules of ownership, queues and programs. It
implements the contract of the class of accelerators, and shares no code with the planner.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from opwest.model.types.model import Model, Step
from opwest.model.types.sections import Device
from opwest.plan.schedule import Schedule
from plan_checks import check

Kind = Literal["step", "launch", "load"]
Duration = Callable[[Kind, int], int]
"""The cycles that something takes up to a limit."""


def longest(_: Kind, limit: int) -> int:
    return limit


@dataclass(eq=False)
class Job:
    """A step in a queue, the remaining cycles, and the program that the job has with it, if switching is free."""

    step: Step
    left: int
    carried: str | None
    started: bool = False


@dataclass
class Accelerator:
    """A device: a queue that runs in order, a loaded program, an owner."""

    rules: Device
    owned: bool = False
    loaded: str | None = None
    queue: list[Job] = field(default_factory=list)
    most: int = 0
    """The largest number of jobs in the queue."""

    def enqueue(self, step: Step, cycles: int) -> Job:
        check(self.owned, f"step {step.index} uses {self.rules.name} without ownership")
        job = Job(step, cycles, self.loaded)
        self.queue.append(job)
        self.most = max(self.most, len(self.queue))
        depth = self.rules.queue_depth
        check(depth is None or len(self.queue) <= depth, f"{self.rules.name} has {len(self.queue)} jobs")
        return job

    def load(self, step: Step) -> None:
        name = self.rules.name
        check(self.owned, f"{name} is loaded for step {step.index} without ownership")
        check(self.rules.switching == "free" or not self.queue, f"{name} is loaded while it works")
        check(step.program is not None, f"no program is loaded for step {step.index}")
        check(self.loaded != step.program.name, f"{name} is loaded twice for step {step.index}")
        self.loaded = step.program.name

    def finish(self) -> bool:
        """Start the first job, and end it if no cycle is left; return whether it has ended."""
        if not self.queue:
            return False
        job = self.queue[0]
        if not job.started:
            job.started = True
            program = job.carried if self.rules.switching == "free" else self.loaded
            wanted = job.step.program
            check(wanted is None or wanted.name == program, f"step {job.step.index} runs with program {program}")
        if job.left == 0:
            self.queue.pop(0)
        return job.left == 0


class TimedMachine:
    def __init__(self, model: Model, schedule: Schedule, duration: Duration) -> None:
        self.schedule = schedule
        self.duration = duration
        self.devices = {device.name: Accelerator(device) for device in model.devices}
        self.time = 0
        self.loads = 0

    def run(self) -> int:
        processor = self._processor()
        ready = next(processor, None)
        while ready is not None:
            self._settle()
            if ready():
                ready = next(processor, None)
                continue
            check(self.time < 100_000, "the run does not end")
            self.time += 1
            for device in self.devices.values():
                if device.queue:
                    device.queue[0].left -= 1
        for name, device in self.devices.items():
            check(not device.queue and not device.owned, f"{name} has work or an owner after the run")
        return self.time

    def _settle(self) -> None:
        for device in self.devices.values():
            while device.finish():
                pass

    def _processor(self) -> Iterator[Callable[[], bool]]:
        """Yield conditions that the processor waits for, one after the other."""
        for index, waits in enumerate(self.schedule.syncs):
            for sync in waits:
                device = self.devices[sync.device]
                check(device.owned, f"a wait for {sync.device} without ownership")
                yield lambda device=device, leave=sync.leave: len(device.queue) <= leave
                left = {job.step.index for job in device.queue} & set(sync.steps)
                check(not left, f"{sync.device} works on steps {left} after a wait for them")
            for name, hold in self.schedule.holds.items():
                if hold.last == index:
                    check(self.devices[name].owned, f"{name} is released twice")
                    check(not self.devices[name].queue, f"{name} is released with work")
                    self.devices[name].owned = False
                if hold.first == index:
                    check(not self.devices[name].owned, f"{name} is acquired twice")
                    self.devices[name].owned = True
            if index < len(self.schedule.steps):
                yield from self._step(self.schedule.steps[index])

    def _step(self, step: Step) -> Iterator[Callable[[], bool]]:
        cycles = self.duration("step", step.cycles)
        if step.device is None:
            yield self._after(cycles)
            return
        device = self.devices[step.device]
        if step.index in self.schedule.loads:
            device.load(step)
            self.loads += 1
            yield self._after(self.duration("load", device.rules.switch_cycles))
        if step.operator.is_async:
            yield self._after(self.duration("launch", step.operator.launch_cycles))
            device.enqueue(step, cycles)
            return
        job = device.enqueue(step, cycles)
        yield lambda: job not in device.queue

    def _after(self, cycles: int) -> Callable[[], bool]:
        end = self.time + cycles
        return lambda: self.time >= end
