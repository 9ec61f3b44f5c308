# SPDX-License-Identifier: Apache-2.0
"""What a file of Vela contains, independent of its format."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.graph.user import KIND, Argument, Use, UserOperator
from opwest.objects.ethos_u.payload import ALIGNMENT, U85, Npu
from opwest.objects.ethos_u.stream import Examined, examine

CUSTOM_CODE = "ethos-u"
"""The custom code of the operator that runs on the NPU."""


@dataclass(frozen=True, eq=False)
class Call:
    """One subgraph that runs on the NPU."""

    label: str
    """The operator in messages."""
    payload: bytes
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory that all subgraphs of the NPU have in common; sizes in bytes."""

    weights: Any
    """A numpy array of uint8, read only; possibly empty."""
    arena: int
    """The scratch memory, which contains inputs and outputs."""
    fast: int | None
    """The fast scratch memory; None: it is the arena."""


@dataclass(frozen=True, eq=False)
class VelaFile:
    """A model with subgraphs for the NPU."""

    graph: Graph
    """Subgraphs for the NPU are operators of the user: the keys of `calls`."""
    calls: Mapping[UserOperator, Call]
    memory: Memory
    offsets: Mapping[Tensor, int]
    """The places of tensors in the arena, bytes; tensors that are absent are not planned."""
    remarks: tuple[str, ...] = ()


def node_of(call: Call, number: int, place: str) -> tuple[Node, UserOperator]:
    """Return the node of a subgraph for the NPU, with its operator."""
    where = Location(place)
    arguments = tuple(
        Argument(f"{name}{i}", one.dtype, one.shape, direction, False, where, {})
        for name, direction, tensors in (("x", "in", call.inputs), ("y", "out", call.outputs))
        for i, one in enumerate(tensors)
    )
    operator = UserOperator(f"npu_{number}", where, arguments, False, {}, None, {"objects": []})
    node = Node(KIND, call.inputs, call.outputs, {"use": Use(operator, {})}, call.label, source=CUSTOM_CODE)
    return node, operator


WEIGHTS, ARENA, FAST = range(3)
"""The regions of Vela."""
_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
"""Those of inputs and outputs of subgraphs for the NPU, which computes with integers."""


@dataclass(frozen=True, eq=False)
class Meaning:
    """What the NPU does in a file."""

    npu: Npu
    """The only NPU that all payloads are for."""
    regions: tuple[int, ...]
    """The memory of each base pointer that is passed: WEIGHTS, ARENA or FAST."""
    writes: Mapping[Call, tuple[tuple[int, int], ...] | None]
    """The bytes of the arena that each subgraph writes: first byte and end; None: unknown."""


def bytes_of(tensor: Tensor) -> int:
    """Return the size of a tensor."""
    return prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def meaning_of(file: VelaFile, place: str, npu: Npu | None = None) -> Meaning:
    """Return the meaning of a file; `npu` is the NPU that it must be for, None: any. Raises OpwestError.

    All faults are reported at once.
    """
    faults = Diagnostics()
    where = Location(place)
    memory = file.memory
    fast = memory.arena if memory.fast is None else memory.fast
    examined: dict[Call, Examined] = {}
    for call in file.calls.values():
        label = f"operator {call.label}"
        examined[call] = found = examine(call.payload, npu, (memory.weights.nbytes, memory.arena, fast), {0})
        separate = found.regions - {WEIGHTS, ARENA, FAST}
        if separate:
            faults.error(
                f"{label}: the payload uses region {min(separate)}: separate regions for inputs and outputs",
                where,
                expected="inputs and outputs in the scratch memory",
                hint="compile without --separate-io-regions",
            )
            continue
        for fault in found.faults:
            text = f"{label}: {fault.message}"
            faults.error(text, where, expected=fault.expected, hint=fault.hint)
        _check_tensors(call, file, faults, where)
    npus = list(dict.fromkeys(one.npu for one in examined.values() if one.npu is not None))
    if len(npus) > 1:
        names = " and ".join(one.name for one in npus)
        faults.error(f"the file has payloads for {names}", where, expected="payloads for one NPU")
    faults.raise_if_errors()
    has_fast = any(FAST in one.regions for one in examined.values()) or (
        npus[0].product == U85 and memory.fast is not None
    )
    regions = (WEIGHTS, ARENA, *([ARENA if memory.fast is None else FAST] if has_fast else []))
    return Meaning(npus[0], regions, {call: _writes(one) for call, one in examined.items()})


def _writes(of: Examined) -> tuple[tuple[int, int], ...] | None:
    if of.npu is None or of.npu.product == U85:
        return None
    return tuple((use.begin, use.end) for use in of.uses if use.writes and use.region == ARENA)


def _check_tensors(call: Call, file: VelaFile, faults: Diagnostics, where: Location) -> None:
    """Report inputs and outputs that are not in the arena, or misaligned."""
    for tensor in (*call.inputs, *call.outputs):
        offset = file.offsets.get(tensor)
        what = f"operator {call.label}: tensor '{tensor.name}'"
        if tensor.dtype not in _DTYPES:
            faults.error(f"{what} has the dtype {tensor.dtype}", where, expected=f"one of {', '.join(_DTYPES)}")
        elif offset is None:
            faults.error(f"{what} is not planned", where, expected="an offset in OfflineMemoryAllocation")
        elif offset < 0 or offset + bytes_of(tensor) > file.memory.arena:
            faults.error(
                f"{what} is planned at bytes {offset} to {offset + bytes_of(tensor) - 1}",
                where,
                expected=f"bytes within the scratch memory of {file.memory.arena} bytes",
            )
        elif offset % ALIGNMENT:
            faults.error(
                f"{what} is planned at byte {offset} of the scratch memory",
                where,
                expected=f"a multiple of {ALIGNMENT} bytes",
            )
