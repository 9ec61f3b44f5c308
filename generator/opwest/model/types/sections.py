# SPDX-License-Identifier: Apache-2.0
"""Sections of a manifest as types: devices, their programs, tests, the application, microTVM's interface."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.facts import SOURCE_SUFFIXES, is_cpp

STRUCT_DEVICE = "const struct device *"
STRUCT_LAUNCH = "const struct opwest_launch *"
Switching = Literal["free", "load", "exclusive"]
"""The cost of a program switch: none, a load with an empty queue, a load while no other model has the device open."""
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


@dataclass(frozen=True, slots=True)
class Vectors:
    """Golden vectors of one file: for every input and output, the bytes of `count` consecutive cases."""

    file: str
    count: int
    content: tuple[tuple[str, bytes], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The accepted difference of an output from a vector: `absolute` + `relative` * |expected|."""

    output: str
    absolute: float
    relative: float


@dataclass(frozen=True, slots=True)
class Suite:
    """The comparisons of the emitted test suite; outputs without a tolerance must be equal bit for bit."""

    vectors: tuple[Vectors, ...]
    tolerances: tuple[Tolerance, ...]
    repeatable: bool
    """Whether equal inputs give equal outputs: no operator keeps state."""


@dataclass(frozen=True, slots=True)
class ApplicationFile:
    """A user's file, copied once."""

    name: str
    """The path in the application: `src/main.c`; for an overlay, in the manifest's directory."""
    content: bytes = field(repr=False)
    location: Location


@dataclass(frozen=True, slots=True)
class Application:
    """The user's part of the application."""

    files: tuple[ApplicationFile, ...] = ()
    overlays: tuple[tuple[str, ApplicationFile], ...] = ()
    """A devicetree overlay per board."""
    kconfig: tuple[tuple[str, str | int], ...] = ()
    """Options for prj.conf."""
    kconfig_places: tuple[tuple[str, Location], ...] = ()
    """Their locations in the manifest."""
    console: tuple[str, ...] = ()

    @property
    def has_main(self) -> bool:
        """Whether the sources include main.c, or main in C++."""
        return any(f.name.startswith("src/main.") and f.name.endswith(SOURCE_SUFFIXES) for f in self.files)

    @property
    def has_cpp(self) -> bool:
        """Whether a source is C++."""
        return any(is_cpp(f.name) for f in self.files)


@dataclass(frozen=True, slots=True)
class Tvmgen:
    """microTVM's C interface of a model: `tvmgen_<module>.h`."""

    module: str
    names: tuple[tuple[str, str], ...]
    """Inputs, outputs and devices whose member has another name, with that name."""
    pools: tuple[str, ...]
    """The members of struct tvmgen_<module>_workspace_pools; without one, the memory is static."""
    location: Location

    @property
    def prefix(self) -> str:
        """The prefix of functions and structures; that of macros in upper case."""
        return f"tvmgen_{self.module}"

    def size_macro(self, member: str) -> str:
        """The size of an input or output."""
        return f"{self.prefix}_{member}_SIZE".upper()

    def pool_macro(self, member: str) -> str:
        """The prefix of the macros of a pool of the caller."""
        return f"{self.prefix}_{member}_WORKSPACE_POOL".upper()

    @property
    def workspace_macro(self) -> str:
        """The size of the workspace."""
        return f"{self.prefix}_WORKSPACE_SIZE".upper()

    def member(self, name: str) -> str:
        """Return the member of an input, output or device."""
        return dict(self.names).get(name, name)
