# SPDX-License-Identifier: Apache-2.0
"""The data of a report: the form of `opwest report --format json`, embedded in every page.

Sizes and offsets are bytes, steps count from 0 in the order in which they run. Paths are those of the manifest,
never absolute, and there is no date: the same inputs give the same report. `SCHEMA` increases when the meaning of a
field changes or a field is removed; new optional fields do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FORMAT: Final = "opwest-report"
SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Peak:
    """The first step in which the most bytes are alive."""

    step: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Pool:
    """One memory pool: what the plan needs of it, and the least that any plan could need."""

    name: str
    planned: int
    lower_bound: int
    align: int
    limit: int | None
    """Its size as the manifest gives it; None where it is as large as needed."""
    peak: Peak


@dataclass(frozen=True, slots=True)
class Buffer:
    """A rectangle of the memory map: `reserved` bytes from `offset`, from step `first` to step `last`."""

    name: str
    role: str
    """intermediate, scratch, input, output or constant (one that is copied to memory)."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    reserved: int
    """`bytes` and what its alignment adds."""
    pool: str
    offset: int
    first: int
    last: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    takes_over: str | None = None
    """The buffer in whose memory it begins while that one still lives: a result in place of an argument."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Waiting for a device: what was launched on it has ended afterwards."""

    device: str
    before: int
    """The step that it comes before; the number of steps at the end of the run."""
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One call of an operator."""

    index: int
    operator: str
    device: str | None
    launched: bool
    """It returns when the device has begun; otherwise when the work is done."""
    line: int
    """Of the manifest."""


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator."""

    name: str
    origin: str
    program: str | None


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of the model."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    placed: bool
    """It lives in the workspace; otherwise its memory is the caller's."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Parameters in flash."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    pool: str | None
    """The pool that it is copied to as well."""
    operators: tuple[str, ...]
    """Who reads it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What accelerators are programmed with, in flash."""

    name: str
    symbol: str
    """In C; made of its content, so that models share it."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: its own code in bytes and the stack of its own frame, by target, where its object tells."""

    name: str
    symbol: str
    steps: tuple[int, ...]
    code: Mapping[str, int]
    stack: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Object:
    """A row of the exportability table; sizes are None where it is compiled with the firmware."""

    name: str
    kind: str
    target: str
    exportable: str
    reasons: tuple[str, ...]
    code: int | None
    constant: int | None
    state: int | None
    stack: str


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a run that was measured; times in the profile's unit, over `runs` runs."""

    kind: str
    """step, launch (the call that enqueues alone), wait (for a device) or cache."""
    step: int | None
    steps: tuple[int, ...]
    operator: str | None
    device: str | None
    runs: int
    min: float
    max: float
    mean: float


@dataclass(frozen=True, slots=True)
class Profile:
    """A measured run."""

    source: str
    """The file's name."""
    where: str
    """`host`, or the board."""
    clock: str
    """Whose clock: host, board, emulated or simulated."""
    unit: str
    """cycles or ns."""
    frequency_hz: int
    """Of the counter; 0 where it is not known."""
    run: Point
    """The whole of run: what happens between the points, and the measuring, included."""
    points: tuple[Point, ...]
    """In the order in which they happen."""
    stack_used: int | None
    stack_size: int | None


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
    """What `opwest run` found: errors of outputs, latencies in nanoseconds."""

    source: str
    board: str | None
    clock: str | None
    """Whose clock: board, emulated or simulated."""
    latency_ns: tuple[int, ...]
    errors: tuple[OutputError, ...]


@dataclass(frozen=True, slots=True)
class ImageItem:
    """A part of a linked image that belongs to a model: operator, constant, program, or all that opwest adds."""

    name: str
    kind: str
    """code, constant, program or other."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Image:
    """What a linked image has of a model in flash, by the sizes of its symbols."""

    source: str
    """The file's name."""
    machine: str
    items: tuple[ImageItem, ...]
    flash: int | None = None
    """Bytes of the whole image that lie in flash, Zephyr's included; None where it is not linked."""
    ram: int | None = None
    """Bytes of the whole image that lie in RAM; data with initial values counts in both."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file that the model was made from."""

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


@dataclass(frozen=True, slots=True)
class Stale:
    """An input that is no longer what the project was generated from."""

    model: str
    file: str
    state: str
    """changed, new, or gone; for a project that another opwest made, `opwest`."""


@dataclass(frozen=True, slots=True)
class Report:
    """The whole of it."""

    opwest: str
    """The version that made the report."""
    models: tuple[Model, ...]
    stale: tuple[Stale, ...] = field(default=())
