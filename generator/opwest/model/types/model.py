# SPDX-License-Identifier: Apache-2.0
"""The model: all declarations of a manifest, resolved, checked and immutable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import cached_property
from typing import Literal

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.builds import CppNeeds, External, StackNeed, Target, TargetBuild, Variant
from opwest.model.types.conventions import UNPACKED, Convention, WorkspaceNeed
from opwest.model.types.dtypes import TensorType
from opwest.model.types.passing import Nulls, Parameter, parameters
from opwest.model.types.sections import Application, Device, Devicetree, Program, Suite, Tvmgen
from opwest.objects.library_symbols import EFFECTS


@dataclass(frozen=True, slots=True)
class FixedOffset:
    """The offset of a buffer, bytes, as the manifest gives it."""

    buffer: str
    offset: int
    location: Location


@dataclass(frozen=True, slots=True)
class FixedPool:
    """The offsets that the manifest gives in one pool, or a table of them that the planning reads."""

    pool: str
    location: Location
    offsets: tuple[FixedOffset, ...] = ()
    table: str | None = None
    """The text of a table in MiniMalloc's format."""
    file: str = ""
    """The path of the table."""


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """The offsets that the manifest gives."""

    location: Location
    pools: tuple[FixedPool, ...]


Direction = Literal["in", "out", "inout", "scratch"]
DEFAULT_ALIGNMENT = 8
"""Bytes. Sufficient for every dtype, and for operators that read int8 buffers in words."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """real = scale * (value - zero_point), one pair, or one per slice along `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What the metadata contains about the elements of a tensor besides its type."""

    quantization: Quantization | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operator, in the order of the C function."""

    name: str
    type: TensorType
    direction: Direction
    scalar: bool
    align: int
    info: TensorInfo
    location: Location
    pointer: bool = False
    """In packed and ffi operators: the data pointer is passed instead of a DLTensor."""
    supplied: Literal["workspace", "arrays"] | None = None
    """Memory that opwest adds for a call, without a parameter of the compiled function."""
    in_place: tuple[str, ...] = ()
    """The arguments whose memory this result may reuse."""
    phases: tuple[int, int] | None = None
    """The first and the last phase of the operator in which it accesses the memory; None: any."""
    is_result: bool = False
    """Whether it is the tensor for the value that the compiled function returns."""
    struct: str | None = None
    """The tag or typedef of the structure that the bytes contain, such as an operator's context."""
    table: str | None = None
    """The table of pointers that contains its address; None if it is a parameter of its own."""

    @property
    def is_passed(self) -> bool:
        """Whether the compiled function has a parameter for it."""
        return self.supplied is None and not self.is_result

    @property
    def c_type(self) -> str:
        """The C type of the parameter."""
        c_type = self.type.dtype.c_type if self.struct is None else "void"  # a tag could be one of Zephyr's
        if self.scalar:
            return c_type
        return f"const {c_type} *" if self.direction == "in" else f"{c_type} *"

    @property
    def is_read(self) -> bool:
        """Whether the operator reads the tensor."""
        return self.direction in ("in", "inout")

    @property
    def is_written(self) -> bool:
        """Whether the operator writes the tensor."""
        return self.direction in ("out", "inout")


@dataclass(frozen=True, slots=True)
class Operator:
    """One compiled function with its declared signature."""

    name: str
    symbol: str
    description: str | None
    args: tuple[Argument, ...]
    returns_status: bool
    """Whether a call by run returns a status."""
    takes_device: bool
    device_type: str | None
    device_program: str | None
    handle: str
    """The C type of the last argument, for the device; STRUCT_LAUNCH if it takes a launch."""
    is_async: bool
    stateful: bool
    location: Location
    convention: Convention = UNPACKED
    workspace: WorkspaceNeed | None = None
    check: str | None = None
    """The symbol of the function without arguments that open calls."""
    takes_launch: bool = False
    """Whether it takes the launch context of its step instead of the device."""
    program: Program | None = None
    """The default program of its steps; it replaces that of their device."""
    cycles: int | None = None
    """The longest duration of a step in cycles, without its launch; None if unknown."""
    launch_cycles: int = 0
    """The longest duration of an asynchronous call, cycles of the processor."""
    uses: tuple[str, ...] = ()
    """The effects besides `state` that its entry permits, in the order of EFFECTS."""
    object_effects: tuple[str, ...] = ()
    """The effects that entries of `objects` permit for its code."""
    stack: int | None = None
    """The most bytes of stack that a call needs, as declared; None without a declaration."""
    stack_location: Location | None = None
    nulls: tuple[Nulls, ...] = ()
    """The pointers without a tensor, in order."""

    @property
    def declared_effects(self) -> tuple[str, ...]:
        """The effects that its entry permits, `state` included."""
        return (*["state"] * self.stateful, *self.uses)

    @property
    def permits(self) -> tuple[str, ...]:
        """All effects that it may have."""
        effects = {*self.declared_effects, *self.object_effects}
        return tuple([e for e in EFFECTS if e in effects]) if effects else ()

    @property
    def passed(self) -> tuple[Argument, ...]:
        """The arguments of the compiled function, without the device."""
        return tuple(a for a in self.args if a.is_passed)

    @property
    def result(self) -> Argument | None:
        """The tensor for the value that the compiled function returns."""
        for argument in self.args:
            if argument.is_result:
                return argument
        return None

    @property
    def is_bridged(self) -> bool:
        """Whether run calls it through a wrapper with `args` as plain parameters."""
        has_pointers = self.convention.has_tables or bool(self.nulls)
        return has_pointers or self.uses_tvm or self.convention.descriptors is not None or self.result is not None

    @property
    def uses_tvm(self) -> bool:
        """Whether its bridge calls CONFIG_OPWEST_TVM."""
        needs_status = self.convention.descriptors is not None and self.convention.descriptors.status is not None
        return self.convention.arrays is not None or self.workspace is not None or needs_status

    @property
    def c_result(self) -> str:
        """The C type that the compiled function returns."""
        if self.result is not None:
            return self.result.type.dtype.c_type
        return "int32_t" if self.returns_status else "void"

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The name and C type of every parameter of the compiled function."""
        if self.convention.arrays is not None:
            return self.convention.arrays.parameters
        device = (("device", self.handle),) if self.takes_device else ()
        return (*((p.name, p.c_type) for p in self.passing), *device)

    @property
    def passing(self) -> tuple[Parameter, ...]:
        """The parameters that pass `args`, of a convention without arrays; the device follows."""
        return parameters(self.args, self.nulls, self.convention)

    @property
    def prototype(self) -> str:
        """The C prototype without the function's name: `int32_t (const int8_t *, int8_t *)`."""
        types = [c_type for _, c_type in self.parameters]
        return f"{self.c_result} ({', '.join(types)})"

    @property
    def step_args(self) -> tuple[Argument, ...]:
        """The arguments that a step lists: all except scratch."""
        return tuple(a for a in self.args if a.direction != "scratch")


@dataclass(frozen=True, slots=True)
class Pool:
    """A memory area; `size` and `align` are in bytes. Without a size it is as large as needed."""

    name: str
    size: int | None
    align: int
    cache_line: int | None
    """Size of a cache line in bytes; None if the processor does not cache the pool."""
    reachable_by: frozenset[str] | None
    boards: tuple[tuple[str, Devicetree], ...]
    location: Location
    size_location: Location


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant tensor; `content` is little-endian, in C order."""

    name: str
    type: TensorType
    content: bytes = field(repr=False)
    align: int
    info: TensorInfo
    pool: str | None
    """The pool that it is copied to when the model is opened; None if it is read from flash."""
    location: Location


@dataclass(frozen=True, slots=True)
class Interface:
    """An input or output of the model."""

    name: str
    type: TensorType
    align: int
    info: TensorInfo
    description: str | None
    external: bool | None
    """The manifest's key `external`: whether the caller provides the memory; None if absent."""
    pool: str | None
    location: Location
    placed: bool = False
    """Whether it is a buffer in the workspace; otherwise the caller provides the memory."""
    agents: frozenset[str] = frozenset()
    """The agents that access it: names of devices, and "cpu"."""
    labels: tuple[str, ...] = ()
    """The names of the classes of an output."""


MemoryPlanner = Literal["greedy", "search", "fixed"]

BufferRole = Literal["intermediate", "scratch", "input", "output", "constant", "state"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer in the workspace, placed by the planner. The schedule defines its lifetime."""

    name: str
    role: BufferRole
    type: TensorType
    align: int
    pools: tuple[str, ...]
    """The pools that all its agents can reach, in order of preference; a single one if the manifest names it."""
    incoherent: bool
    """Whether a device that is not coherent with the processor's cache accesses it."""
    inside: tuple[str, int] | None = None
    """The buffer that contains it, and its offset there, bytes; None if it has memory of its own."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The value for one argument of a step: a tensor by role and name, or a number."""

    role: Literal["input", "output", "constant", "buffer", "scalar"]
    name: str
    value: int | float = 0
    view: str | None = None
    """The view through which the step accesses the tensor `name`; None for the whole tensor."""
    offset: int = 0
    """The start of the view in the tensor, bytes."""

    @property
    def shown(self) -> str:
        """The name in the manifest's step."""
        return self.view or self.name


@dataclass(frozen=True, slots=True)
class View:
    """A contiguous part of another tensor, `root`, from `offset` on, bytes."""

    name: str
    type: TensorType
    root: str
    offset: int

    @property
    def end(self) -> int:
        """The first byte after the view in its root."""
        return self.offset + self.type.size


@dataclass(frozen=True, slots=True)
class State:
    """A tensor in the workspace whose content lasts from one run to the next."""

    name: str
    type: TensorType
    align: int
    info: TensorInfo
    description: str | None
    initial: str | None
    """The constant that contains the initial content, or one period of it; None for zeros."""
    next: Binding | None
    """The tensor whose content a successful run copies to the state at its end."""
    pool: str | None
    location: Location


@dataclass(frozen=True, slots=True)
class Step:
    """One call: `bindings` has an entry for every argument of the operator, scratch included."""

    index: int
    operator: Operator
    device: str | None
    bindings: tuple[Binding, ...]
    location: Location
    program: Program | None = None
    """The program that the device runs for it; None on the processor, and for a device without programs."""
    cycles: int | None = None
    """Its longest duration in cycles, without its launch; None if unknown."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of calls at run time that are in the code."""

    busy: bool = True
    """A function of a workspace returns -EBUSY while another thread is in one."""
    buffers: bool = True
    """Buffers of the caller that overlap are refused."""


@dataclass(frozen=True)
class Model:
    """A resolved manifest: the unit of emission."""

    name: str
    description: str | None
    manifest: str
    boards: tuple[str, ...]
    operators: tuple[Operator, ...]
    devices: tuple[Device, ...]
    pools: tuple[Pool, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[Interface, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    reorder: bool
    """Whether steps may be reordered."""
    memory_planner: MemoryPlanner
    builds: tuple[TargetBuild, ...]
    declared_targets: tuple[Target, ...]
    """The targets under `targets` in the manifest, used or not."""
    externals: tuple[External, ...]
    needs_full_libc: bool
    needs_tvm: bool
    """Whether it calls functions of CONFIG_OPWEST_TVM."""
    application: Application
    suite: Suite
    compat: Literal["tvm-crt", "tvm-crt-all"] | None
    """The operators in the image's table in microTVM's layout."""
    inputs_read: tuple[tuple[str, str], ...]
    """The SHA-256 of the manifest (under its file name) and of every file that it names."""
    location: Location
    states: tuple[State, ...] = ()
    views: tuple[View, ...] = ()
    """The views that steps use."""
    fixed: FixedPlan | None = None
    """The given offsets, for the planner `fixed`."""
    stack: tuple[StackNeed, ...] = ()
    """One per target; empty if all operators are C sources."""
    cpp: CppNeeds = CppNeeds(language=False, library=False)
    tvmgen: Tvmgen | None = None
    """microTVM's C interface, if the manifest requests it."""
    needs_halide: bool = False
    """Whether it calls functions of CONFIG_OPWEST_HALIDE."""
    stateful: bool = False
    """Whether operators may have writable state: one workspace at a time can be open."""
    board_locations: tuple[tuple[str, Location], ...] = ()
    """The boards of the manifest, with their places there."""
    licence: str | None = None
    """The licence expression of the model, with the spelling of SPDX's list."""
    variant: Variant | None = None
    """The variant of the model; None for the base."""
    streams: bool = False
    """Whether submit and poll are emitted."""
    checks: Checks = Checks()

    @property
    def label(self) -> str:
        """The name in output for users, with the variant."""
        return f"{self.name}, variant {self.variant.name}" if self.variant else self.name

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs of all devices, then those of the operators and of the steps in order, each content once."""
        by_content: dict[bytes, Program] = {}
        owners = (self.devices, self.operators, self.steps)
        for program in (item.program for listed in owners for item in listed):
            if program is not None:
                by_content.setdefault(program.content, program)
        return tuple(by_content.values())

    @property
    def planned(self) -> tuple[Buffer, ...]:
        """The buffers with memory of their own."""
        return tuple(buffer for buffer in self.buffers if buffer.inside is None)

    def board_location(self, board: str) -> Location:
        """Return the place of a board in the manifest; that of the model for a board of the command line."""
        return dict(self.board_locations).get(board, self.location)

    def device(self, name: str) -> Device:
        """Return a device by name."""
        return self._devices[name]

    @cached_property
    def _devices(self) -> dict[str, Device]:
        return {device.name: device for device in self.devices}


def bases(models: Iterable[Model]) -> list[Model]:
    """Return the models without their variants."""
    return [model for model in models if model.variant is None]


def variants_of(model: Model, models: Iterable[Model]) -> list[Model]:
    """Return the variants of a model."""
    return [model_ for model_ in models if model_.variant is not None and model_.name == model.name]
