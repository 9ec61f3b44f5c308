# SPDX-License-Identifier: Apache-2.0
"""The result of an import in the structure of a manifest, and the text of the manifest, for users to read and edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.names import opening
from opwest.manifest import writer
from opwest.manifest.placeholders import MARK
from opwest.model.types.conventions import UNPACKED, Convention


@dataclass(frozen=True)
class Argument:
    """An argument of an operator."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    direction: str = "in"
    align: int | None = None
    pointer: bool = False
    """Packed operators: pass the bare data pointer instead of a DLTensor."""
    in_place: str | None = None
    """The argument whose memory the result may use."""
    phases: tuple[int, int] | None = None
    """The phases of the operator that access it; None: all."""


@dataclass(frozen=True)
class Operator:
    """An operator; `remark` is its comment."""

    name: str
    symbol: str
    args: tuple[Argument, ...]
    workspace: int = 0
    convention: Convention = UNPACKED
    device: bool = False
    remark: str | None = None
    device_name: str | None = None
    """The device whose type the operator requires; None with `device`: any."""
    void: bool = False
    """Whether the function returns no status."""


@dataclass(frozen=True)
class Constant:
    """A constant: `file` is one of the written files, `key` an array of an .npz."""

    name: str
    file: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    align: int | None = None
    key: str | None = None
    remark: str | None = None


@dataclass(frozen=True)
class Tensor:
    """An input or output of the model."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor in a graph, or in the text of Relay."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """A call."""

    operator: str
    args: tuple[str, ...]
    device: str | None = None


@dataclass
class Draft:
    """A model before rendering to a manifest, with the other files."""

    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    operators: list[Operator] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    accelerators: set[str] = field(default_factory=set)
    """The devices whose hooks main called: opwest's accelerators."""
    aligned: dict[str, int] = field(default_factory=dict)
    """Alignments of intermediate tensors."""
    memory: tuple[int, int] | None = None
    """Bytes of memory in TVM's plan and in opwest's, of an unpacked main."""
    planner: str | None = None
    """The memory planner, if not the default."""
    offsets: dict[str, int] = field(default_factory=dict)
    """The offsets in the pool, for the memory planner `fixed`."""
    externals: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Symbols with their provider, and the Kconfig symbol that enables them."""
    kconfig: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    objects: list[tuple[str | None, str]] = field(default_factory=list)
    """Targets (None: sources, for any) with their files."""
    remarks: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TensorOption:
    """A tensor type from the command line: --tensor NAME=[DTYPE:]SHAPE."""

    dtype: str | None
    shape: tuple[int, ...]


TensorOptions = Mapping[str, TensorOption]


def manifest_text(model: str, draft: Draft, origin: str, compat: Sequence[str]) -> str:
    """Return the manifest; ends with a line end. `compat` is its section of that name."""
    return writer.document(
        opening(model, origin, (*draft.remarks, *draft.warnings)),
        compat,
        ["objects:", *(line for target, file in draft.objects for line in writer.object_entry([file], target))],
        _devices(draft),
        ["operators:", *(line for operator in draft.operators for line in _operator(operator, draft))],
        _constants(draft),
        writer.externals(draft.externals),
        _run(draft),
        writer.kconfig(draft.kconfig),
    )


def _devices(draft: Draft) -> Iterator[str]:
    if not draft.devices:
        return
    yield "devices:"
    for name in draft.devices:
        if name in draft.accelerators:
            text = (
                "The hooks of its driver replace TVMDevice…Activate, Open, Close and Deactivate; the model's open "
                "activates it once. Specify its devicetree node, and a program if it needs one."
            )
            yield from writer.comment(text, "  ")
            yield f"  {writer.scalar(name)}:"
            yield f"    devicetree: {writer.flow_map({'nodelabel': MARK})}"
            yield f"    type: {writer.scalar(name)}"
            continue
        yield from writer.comment(
            "TVM passes a bare pointer: specify its type, the header, and the expression for your board."
        )
        yield f"  {writer.scalar(name)}:"
        yield f"    handle: {writer.flow_map({'type': MARK, 'header': MARK, 'expression': MARK})}"


def _operator(operator: Operator, draft: Draft) -> Iterator[str]:
    if operator.remark:
        yield from writer.comment(operator.remark, "  ")
    device = writer.flow_map({"handle": MARK}) if operator.device else None
    if operator.device and operator.device_name in draft.accelerators:
        device = writer.flow_map({"type": writer.scalar(str(operator.device_name))})
    keys = [
        *writer.key("symbol", writer.scalar(operator.symbol)),
        *writer.key("convention", operator.convention.name if operator.convention is not UNPACKED else None),
        *writer.key("workspace", str(operator.workspace) if operator.workspace else None),
        *writer.key("returns", "void" if operator.void else None),
        *writer.key("device", device),
    ]
    yield from writer.operator(operator.name, keys, map(_argument, operator.args))


def _argument(argument: Argument) -> Iterator[str]:
    return writer.argument(
        argument.name,
        argument.dtype,
        writer.shape_of(argument.shape),
        direction=argument.direction,
        align=argument.align,
        pointer=argument.pointer,
        in_place=() if argument.in_place is None else (argument.in_place,),
        phases=argument.phases,
    )


def _constants(draft: Draft) -> Iterator[str]:
    if not draft.constants:
        return
    yield "constants:"
    for constant in draft.constants:
        if constant.remark:
            yield from writer.comment(constant.remark, "  ")
        keys = {
            "file": writer.scalar(constant.file),
            "key": writer.scalar(constant.key) if constant.key else None,
            "dtype": constant.dtype,
            "shape": None if constant.shape is None else writer.shape_of(constant.shape),
            "align": str(constant.align) if constant.align else None,
        }
        yield f"  {writer.scalar(constant.name)}: {writer.flow_map(keys)}"


def _run(draft: Draft) -> Iterator[str]:
    yield "run:"
    yield from writer.interface("inputs", _tensors(draft.inputs))
    yield from writer.interface("outputs", _tensors(draft.outputs))
    if draft.aligned:
        yield from writer.interface("tensors", {name: {"align": str(align)} for name, align in draft.aligned.items()})
    if draft.planner is not None:
        yield f"  memory_planner: {draft.planner}"
    if draft.offsets:
        yield "  offsets:"
        yield "    sram:"
        listed = sorted(draft.offsets.items(), key=lambda item: item[1])
        yield from (f"      {writer.scalar(name)}: {offset}" for name, offset in listed)
    yield "  steps:"
    for step in draft.steps:
        yield from writer.step(step.operator, step.args, step.device)


def _tensors(tensors: tuple[Tensor, ...]) -> dict[str, dict[str, str]]:
    return {tensor.name: {"dtype": tensor.dtype, "shape": writer.shape_of(tensor.shape)} for tensor in tensors}
