# SPDX-License-Identifier: Apache-2.0
"""Accelerators of a model: devicetree nodes, handles, programs, and the properties of their queues."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass

STRUCT_DEVICE = "const struct device *"
STRUCT_LAUNCH = "const struct opwest_launch *"
Switching = Literal["free", "load", "exclusive"]
"""What another program costs: nothing, a load with an empty queue, a load while no other model has the device open."""
Power = Literal["run", "open"]
"""When run-time power management holds a device active: during ownership, or while the model is open."""
FOREVER = -1


@dataclass(frozen=True, slots=True)
class Program:
    """A program of accelerators: a file, placed in flash once."""

    name: str
    file: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Devicetree:
    """A reference to a devicetree node; `kind` is nodelabel, alias, chosen or compatible."""

    kind: str
    value: str
    index: int
    location: Location

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


@dataclass(frozen=True, slots=True)
class Handle:
    """A device handle of a vendor's type."""

    type: str
    header: str
    expression: str


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator: one member of the device context."""

    name: str
    devicetree: Devicetree | None
    """The node on boards absent from `boards`; None if all boards are listed there, or the device has a handle."""
    boards: tuple[tuple[str, Devicetree], ...]
    handle: Handle | None
    has_hooks: bool
    type: str | None
    program: Program | None
    """The default program of its steps."""
    timeout_ms: int
    """The longest wait for its work, milliseconds; FOREVER for no limit."""
    own_timeout_ms: int
    """The longest wait for another owner, milliseconds; FOREVER for no limit."""
    queue_depth: int | None
    """The largest number of launched steps that have not ended; None for no limit by the schedule."""
    switching: Switching
    switch_cycles: int
    """The duration of one load of a program, cycles."""
    power: Power
    coherent: bool
    reads_flash: bool
    host_latency_us: int | None
    """Microseconds per job of the emulated device on a host; None without emulation."""
    location: Location

    @property
    def c_type(self) -> str:
        """The C type of the handle."""
        return self.handle.type if self.handle else STRUCT_DEVICE
