# SPDX-License-Identifier: Apache-2.0
"""The meaning of a file of Vela: its payloads are valid, and agree with its memory and its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from opwest.diagnostics import Diagnostics, Location
from opwest.ethos_u.check import Examined, examine
from opwest.ethos_u.npus import U85, Npu
from opwest.ethos_u.payload import ALIGNMENT
from opwest.importers.models.graph.types import Tensor
from opwest.importers.vela.file import Call, VelaFile
from opwest.records import dataclass

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
