# SPDX-License-Identifier: Apache-2.0
"""The result of an import in the structure of a manifest, before rendering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from opwest.base.frozen_dataclass import dataclass
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
