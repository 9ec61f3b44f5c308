# SPDX-License-Identifier: Apache-2.0
"""The data of a report: the form of `opwest report --format json`, embedded in every page.

Sizes and offsets are bytes; steps count from 0 in execution order. Paths are as in the manifest, never absolute, and
there is no date, so that equal inputs produce equal reports. `SCHEMA` increases when the meaning of a field changes or
a field is removed; new optional fields do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
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
    """In flash: code (of an operator), kernel (a function that operators call), table (a constant of such functions),
    constant, program, other (a generated file), runtime, library, alignment. In RAM: pool, workspace, state, runtime,
    library, alignment, stack."""
    bytes: int
    object: str = ""
    """The object file, without the suffix of the compiler."""


@dataclass(frozen=True, slots=True)
class Image:
    """The flash and RAM of a model in a linked image, from its symbols and the map file of the linker."""

    source: str
    """Its board, build directory or file."""
    machine: str
    items: tuple[ImageItem, ...]
    """In flash: their sum is what the model adds to the image."""
    flash: int | None = None
    """Bytes of the whole image in flash, including Zephyr; None if it is not linked."""
    ram: int | None = None
    """Bytes of the whole image in RAM; initialised data is counted in flash and RAM."""
    float_code: tuple[ImageItem, ...] = ()
    """The functions of libm and of soft float in the whole image, the largest first."""
    memory: tuple[ImageItem, ...] = ()
    """In RAM, without the buffers of the application. Initialised data is counted in flash and RAM."""
    map: str | None = None
    """The map file; None if the sizes are those of symbols only, without static data of unknown files and padding."""

    @property
    def model_flash(self) -> int:
        """The bytes of the model in flash."""
        return sum(item.bytes for item in self.items)

    @property
    def model_ram(self) -> int:
        """The bytes of the model in RAM, without stacks."""
        return sum(item.bytes for item in self.memory if item.kind != "stack")

    def flash_of(self, *kinds: str) -> int:
        """Return the bytes of the items of some kinds in flash."""
        return sum(item.bytes for item in self.items if item.kind in kinds)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a layer reads or writes."""

    name: str
    """In the file of an imported model, else in the manifest."""
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LayerCost:
    """The cost of a layer on a core, by the import."""

    core: str
    cycles: int
    origin: str
    """measured: modelled from instructions counted in QEMU; estimated: from those of other layers; board: counted."""
    flash: int
    """The estimate of constants, and of the code that no layer before has."""
    scratch: int
    reason: str


@dataclass(frozen=True, slots=True)
class LayerTime:
    """The measured duration of a layer, in the unit of a profile."""

    source: str
    where: str
    clock: str
    unit: str
    mean: float


@dataclass(frozen=True, slots=True)
class Layer:
    """What a step computes; without an import only what the manifest states."""

    step: int
    label: str
    """A short name that no other layer of the model has."""
    kind: str
    """The operators of the file, such as CONV_2D + ADD; the operator of the manifest without an import."""
    name: str
    """The name in the file; empty without an import."""
    inputs: tuple[Operand, ...]
    """Without constants."""
    outputs: tuple[Operand, ...]
    window: str
    """Rows and columns of the window, strides, dilation; empty without a window."""
    constants: int
    """Bytes of the constants that it reads, as linked."""
    macs: int | None = None
    """The multiplications that are added to sums, with those of padding."""
    file_macs: int | None = None
    """Those of the operators in the file, with channels that the import removed."""
    weights: int | None = None
    """Bytes of the weights, as the file has them."""
    kernel: str | None = None
    """The variant of the operator."""
    costs: tuple[LayerCost, ...] = ()
    times: tuple[LayerTime, ...] = ()
    linked: Mapping[str, int] | None = None
    """Bytes in each image: the constants and the code of its operator that no layer before has."""


@dataclass(frozen=True, slots=True)
class Core:
    """A core whose costs the import has."""

    name: str
    source: str
    """The origin of its cycles."""
    flash: str
    """The flash of the cycles, in the form of --flash."""
    cycles: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another implementation of the model: the base or a variant that this report does not describe in full."""

    variant: str | None
    """None for the base."""
    pools: Mapping[str, int]
    """Bytes of each planned pool."""
    constants: int
    layers: tuple[Layer, ...]
    cores: tuple[Core, ...] = ()


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
    variant: str | None = None
    """The variant that is described; None for the base."""
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The variants of the model, with the targets whose images have them. Images of other targets have the base."""
    layers: tuple[Layer, ...] = ()
    """One for each step."""
    cores: tuple[Core, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    """The name in the file of tensors that have another one in the manifest."""
    views: tuple[str, ...] = ()
    """The operators of the file without code, such as RESHAPE."""
    alternatives: tuple[Alternative, ...] = ()

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
