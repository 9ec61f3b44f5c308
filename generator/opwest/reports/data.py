# SPDX-License-Identifier: Apache-2.0
"""The data of a report: the form of `opwest report --format json`, embedded in every page.

Sizes and offsets are bytes; steps count from 0 in execution order. Paths are as in the manifest, never absolute, and
there is no date, so that equal inputs produce equal reports. `SCHEMA` increases when the meaning of a field changes or
a field is removed; new optional fields do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass

FORMAT: Final = "opwest-report"
SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Peak:
    """The first step with the most live bytes."""

    step: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Pool:
    """One memory pool: the size of the plan, and the lower bound for every plan."""

    name: str
    planned: int
    lower_bound: int
    align: int
    limit: int | None
    """Its size in the manifest; None without a limit."""
    peak: Peak


@dataclass(frozen=True, slots=True)
class Buffer:
    """A rectangle of the memory map: `reserved` bytes from `offset`, from step `first` to step `last`."""

    name: str
    role: str
    """intermediate, scratch, input, output, state or constant (copied to memory)."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    reserved: int
    """`bytes` plus the padding of its alignment."""
    pool: str
    offset: int
    first: int
    last: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    takes_over: str | None = None
    """The buffer whose memory it reuses in its first step: an argument that the result overwrites."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait for a device: `steps` are complete afterwards."""

    device: str
    before: int
    """The next step; the number of steps at the end of the run."""
    steps: tuple[int, ...]
    leave: int = 0
    """The number of later launches on the device that may be in progress afterwards."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of an operator."""

    index: int
    operator: str
    device: str | None
    launched: bool
    """Whether it returns after the start of the device, before the work is complete."""
    line: int
    """The line in the manifest."""
    reads: tuple[str, ...] = ()
    """The tensors that it reads, constants included."""
    writes: tuple[str, ...] = ()
    program: str | None = None
    """The program that its device runs."""


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator."""

    name: str
    origin: str
    program: str | None
    """The program of steps without their own."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of the model."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    placed: bool
    """Its memory is in the workspace; otherwise the caller provides it."""
    quantization: str | None = None
    """The meaning of its values in words; None if they are not quantised."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Parameters in flash."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    pool: str | None
    """The pool that it is copied to, if any."""
    operators: tuple[str, ...]
    """Its readers."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of an accelerator, in flash."""

    name: str
    symbol: str
    """Its C symbol, derived from the content, so that models share it."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: the bytes of its code and of its stack frame by target, if its object contains them."""

    name: str
    symbol: str
    steps: tuple[int, ...]
    code: Mapping[str, int]
    stack: Mapping[str, int]
    effects: tuple[str, ...] = ()
    """The effects that the manifest permits: `state` and those of `uses`."""


@dataclass(frozen=True, slots=True)
class Object:
    """A row of the exportability table; sizes are None if it is compiled with the firmware."""

    name: str
    kind: str
    target: str
    exportable: str
    reasons: tuple[str, ...]
    code: int | None
    constant: int | None
    state: int | None
    stack: str
    float_calls: tuple[str, ...] = ()
    """The functions of libm and of soft float that it calls."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured point of a run; times in the profile's unit, over `runs` runs."""

    kind: str
    """step, launch (only the call that enqueues), wait (for a device) or cache."""
    step: int | None
    steps: tuple[int, ...]
    operator: str | None
    device: str | None
    runs: int
    min: float
    max: float
    mean: float
    modelled_cycles: int | None = None
    """Of counted instructions."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A measured run."""

    source: str
    """The file's name."""
    where: str
    """`host`, or the board."""
    clock: str
    """What counts: host, board, counted (instructions in QEMU) or emulated."""
    unit: str
    """cycles, ns, instructions, or ticks of QEMU's timer."""
    frequency_hz: int
    """The frequency of the counter in Hz; 0 if unknown."""
    run: Point
    """The whole run, including the time between points and the overhead of the measurement."""
    points: tuple[Point, ...]
    """In chronological order."""
    stack_used: int | None
    stack_size: int | None
    modelled_processor: str | None = None
    """The processor of the modelled cycles."""


@dataclass(frozen=True, slots=True)
class OutputError:
    """The difference between an output and its reference. Numbers are None if not finite."""

    name: str
    elements: int
    differing: int
    largest: float | None
    mean: float | None


@dataclass(frozen=True, slots=True)
class Results:
    """The results of `opwest run`: errors of outputs, latencies in nanoseconds."""

    source: str
    board: str | None
    clock: str | None
    """The source of the clock: board, emulated or simulated."""
    latency_ns: tuple[int, ...]
    errors: tuple[OutputError, ...]


@dataclass(frozen=True, slots=True)
class ImageItem:
    """A part of a linked image that belongs to a model: operator, constant, program, or the code and data of opwest."""

    name: str
    kind: str
    """code, constant, program or other."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Image:
    """The flash of a model in a linked image, from the sizes of its symbols."""

    source: str
    """Its board, build directory or file."""
    machine: str
    items: tuple[ImageItem, ...]
    flash: int | None = None
    """Bytes of the whole image in flash, including Zephyr; None if it is not linked."""
    ram: int | None = None
    """Bytes of the whole image in RAM; initialised data is counted in flash and RAM."""
    float_code: tuple[ImageItem, ...] = ()
    """The functions of libm and of soft float in the whole image, the largest first."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input file of the model."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """One model."""

    name: str
    description: str | None
    manifest: str
    boards: tuple[str, ...]
    reorder: bool
    pools: tuple[Pool, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    waits: tuple[Wait, ...]
    devices: tuple[Device, ...]
    tensors: tuple[Tensor, ...]
    constants: tuple[Constant, ...]
    programs: tuple[Program, ...]
    operators: tuple[Operator, ...]
    objects: tuple[Object, ...]
    inputs: tuple[Input, ...]
    profiles: tuple[Profile, ...] = ()
    results: tuple[Results, ...] = ()
    images: tuple[Image, ...] = ()
    latency_cycles: int | None = None
    """The bound on the duration of a run; None if steps without cycles exist."""

    def totals(self, part: Literal["code", "constant", "state"]) -> dict[str, int]:
        """Return the bytes of a part of all objects by target, without targets for which they are unknown."""
        totals: dict[str, int] = {}
        for item in self.objects:
            size: int | None = getattr(item, part)
            if size is not None:
                totals[item.target] = totals.get(item.target, 0) + size
        return totals


@dataclass(frozen=True, slots=True)
class Stale:
    """An input that changed after the project was generated."""

    model: str
    file: str
    state: str
    """changed, new or gone; `opwest` for a project of another version of opwest."""


@dataclass(frozen=True, slots=True)
class Report:
    """A complete report."""

    opwest: str
    """The version of opwest that created the report."""
    models: tuple[Model, ...]
    stale: tuple[Stale, ...] = ()
