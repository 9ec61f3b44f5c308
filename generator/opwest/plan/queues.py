# SPDX-License-Identifier: Apache-2.0
"""The queues of devices while a schedule is made: launched steps, loaded programs, and the waits that they require.

A device runs its queue in order, so a wait that leaves a number of steps completes all earlier ones.
"""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.devices import Device
from opwest.model.types.model import Model, Step
from opwest.plan.access import Access, Pending


@dataclass(frozen=True, slots=True)
class Sync:
    """A wait for a device, with the launched steps that it completes."""

    device: str
    steps: tuple[int, ...]
    leave: int = 0
    """The wait ends when at most so many launched steps have not ended."""


class Queues:
    """The devices after a number of steps."""

    def __init__(self, model: Model) -> None:
        self._devices: dict[str, Device] = {device.name: device for device in model.devices}
        self._pending: dict[str, Pending] = {}
        self._loaded: dict[str, bytes] = {}

    def needed(self, step: Step, access: Access) -> list[tuple[str, int]]:
        """Return the waits before a step: devices with the steps to leave, in the order of their first launches."""
        found = []
        for device, launched in self._pending.items():
            if device != step.device:
                if launched.conflicts(access):
                    found.append((device, 0))
            elif (leave := self._room(step, len(launched))) < len(launched):
                found.append((device, leave))
        return sorted(found, key=self._first) if len(found) > 1 else found

    def _first(self, wait: tuple[str, int]) -> int:
        return self._pending[wait[0]].first

    def _room(self, step: Step, launched: int) -> int:
        """Return the largest number of launched steps that its own device may have before a step."""
        device = self._devices.get(step.device or "")
        if device is None:
            return launched
        if self.loads(step) and device.switching != "free":
            return 0
        # A synchronous step needs a place in the queue, too.
        return launched if device.queue_depth is None else min(launched, device.queue_depth - 1)

    def loads(self, step: Step) -> bool:
        """Whether the program of a step must be loaded before it."""
        return step.program is not None and self._loaded.get(step.device or "") != step.program.content

    def switch_cost(self, step: Step) -> int:
        """Return the cost of the step's program: 0 if none is replaced, otherwise 1 and the cycles of the load."""
        if step.program is None or step.device not in self._loaded or not self.loads(step):
            return 0
        device = self._devices.get(step.device)
        return 0 if device is None or device.switching == "free" else 1 + device.switch_cycles

    def wait(self, device: str, leave: int) -> Sync:
        """Complete all launched steps of a device except the last `leave`."""
        launched = self._pending[device]
        done = launched.complete(len(launched) - leave)
        if not len(launched):
            del self._pending[device]
        return Sync(device, done, leave)

    def wait_for_all(self) -> tuple[Sync, ...]:
        """Complete all launched steps, the devices in the order of their first launches."""
        devices = sorted(self._pending, key=lambda name: self._pending[name].first)
        return tuple(self.wait(device, 0) for device in devices)

    def start(self, step: Step, access: Access, index: int) -> None:
        """Load the program of a step and start it; `index` is its position in the order of execution."""
        if step.device is None:
            return
        if step.program is not None:
            self._loaded[step.device] = step.program.content
        if step.operator.is_async:
            self._pending.setdefault(step.device, Pending()).add(access, index)
