# SPDX-License-Identifier: Apache-2.0
"""The check of a payload: used by the importer of Vela's files, and for programs of manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from opwest.diagnostics import Diagnostics, Location
from opwest.ethos_u.memory import Use
from opwest.ethos_u.npus import FAMILY, NPUS, U85, Npu, is_npu
from opwest.ethos_u.payload import Fault, read_payload
from opwest.ethos_u.stream import walk
from opwest.records import dataclass


@dataclass(frozen=True)
class Examined:
    """What a payload contains."""

    npu: Npu | None
    """The NPU that it was made for; None if a fault says why it is unknown."""
    operations: Mapping[str, int]
    """The number of operations of the NPU by name (CONV, DMA_START, ...); empty for Ethos-U85."""
    uses: Sequence[Use]
    """The accesses to regions; empty for Ethos-U85."""
    faults: Sequence[Fault]

    @property
    def regions(self) -> frozenset[int]:
        """The regions that are accessed."""
        return frozenset(use.region for use in self.uses)


def examine(
    content: bytes,
    npu: Npu | None = None,
    regions: Sequence[int | None] | None = None,
    constant: Set[int] = frozenset(),
) -> Examined:
    """Return what a payload contains, with its faults.

    `npu` is the NPU that must run it, None: any. `regions` are the sizes of the memory at the base pointers, bytes;
    None: unknown. `constant` are the regions that can be in flash. Of Ethos-U85, only the driver actions are checked.
    """
    payload = read_payload(content)
    faults = list(payload.faults)
    if npu is not None and payload.npu not in (None, npu):
        found = payload.npu.name if payload.npu else ""
        hint = f"compile the model for it: --accelerator-config {npu.name}"
        faults.append(Fault(f"the payload is for {found}, the device is {npu.name}", f"a payload for {npu.name}", hint))
    if faults or payload.npu is None or payload.npu.product == U85:
        return Examined(payload.npu, {}, (), faults)
    walked = walk(payload.stream, payload.npu.product, payload.start, regions)
    return Examined(payload.npu, walked.operations, walked.uses, [*walked.faults, *_writes(walked.uses, constant)])


def _writes(uses: Sequence[Use], constant: Set[int]) -> Iterator[Fault]:
    """Yield one fault for each constant region that is written."""
    for region in sorted(constant):
        use = next((use for use in uses if use.writes and use.region == region), None)
        if use is not None:
            text = f"it writes {use.what}, bytes {use.begin} to {use.end - 1} of region {region}, which is constant"
            yield Fault(text, "no write to a region of an argument with `direction: in`")


def check_program(
    content: bytes,
    name: str,
    device_type: str | None,
    regions: Sequence[int | None] | None,
    constant: Set[int],
    where: Location,
    faults: Diagnostics,
) -> None:
    """Report the faults of a program of a device; devices of other types may have any program."""
    if not is_npu(device_type) or device_type is None:
        return
    npu = NPUS.get(device_type)
    if npu is None and device_type != FAMILY:
        faults.error(f"unknown NPU {device_type!r}", where, expected=f"{FAMILY}, or one of {', '.join(NPUS)}")
        return
    for fault in examine(content, npu, regions, constant).faults:
        faults.error(f"program {name!r}: {fault.message}", where, expected=fault.expected, hint=fault.hint)
