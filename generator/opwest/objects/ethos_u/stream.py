# SPDX-License-Identifier: Apache-2.0
"""The walk through a command stream of Ethos-U55 and U65: every command known, every access inside its region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.compat import Fault
from opwest.objects.ethos_u.commands import COMMANDS, HAS_DATA, Command, MemoryAccess, fault_of, needed, uses
from opwest.objects.ethos_u.payload import ALIGNMENT, FAMILY, MAX_FAULTS, NPUS, U85, Npu, Payload, is_npu, read_payload

_STOP = "NPU_OP_STOP"
_SET = "NPU_SET_"
_OPERATION = "NPU_OP_"
_ADDRESS_BITS = 40
_ALIGNED = ("WEIGHT_BASE", "WEIGHT1_BASE")
"""Registers with addresses that are multiples of ALIGNMENT."""


class _Walk:
    """A walk through the command stream of a payload.

    `regions` are the sizes of the regions, bytes; None: all are unknown, or this one.
    """

    def __init__(self, payload: Payload, product: int, regions: Sequence[int | None] | None) -> None:
        self.stream, self.start, self.regions = payload.stream, payload.start, regions
        self.commands = COMMANDS[product]
        self.registers: dict[str, int] = {}
        self.operations: dict[str, int] = {}
        """The number of operations by name, without NPU_OP_."""
        self.uses: list[MemoryAccess] = []
        self.faults = list(islice(self._walk(), MAX_FAULTS))

    def _walk(self) -> Iterator[Fault]:
        """Execute the commands; yield their faults."""
        stream = self.stream
        at, name = 0, ""
        while at < len(stream):
            word, place = stream[at], f"at byte {self.start + at * 4} of the payload"
            command = self.commands.get(word & 0xFFFF)
            if command is None:
                hint = "the payload is damaged, or for another NPU"
                yield Fault(f"unknown command {word & 0xFFFF:#06x} {place}", "a command of the NPU", hint)
                return  # its length is unknown
            name = command.name
            has_data = bool(word & HAS_DATA)
            if has_data and at + 1 == len(stream):
                yield Fault(f"the command stream ends inside of {name} {place}", _STOP)
                return
            data = stream[at + 1] if has_data else 0
            at += 2 if has_data else 1
            wrong = fault_of(word, data, command)
            if wrong is not None:
                yield Fault(f"{wrong}, {place}", _expected(command))
            elif name.startswith(_SET):
                yield from self._set(name.removeprefix(_SET), word, data, command, place)
            elif name == _STOP and at < len(stream):
                yield Fault(
                    f"{_STOP} {place} is followed by {counted(len(stream) - at, 'word')}", f"{_STOP} at the end"
                )
                return
            else:
                yield from self._operate(name.removeprefix(_OPERATION), word >> 16, place)
        if name != _STOP:
            yield Fault(f"the command stream ends with {name or 'nothing'}", _STOP, "the payload is truncated")

    def _set(self, name: str, word: int, data: int, command: Command, place: str) -> Iterator[Fault]:
        """Set a register: the parameter, or the data with its extension; addresses and strides are signed."""
        if command.data_bits is None:
            self.registers[name] = word >> 16
            return
        is_address = any(part in name for part in ("BASE", "STRIDE", "DMA0"))
        value = data
        if is_address:
            bits = _ADDRESS_BITS if command.bits else 32
            value |= word >> 16 << 32
            value -= (value >> (bits - 1)) << bits
        self.registers[name] = value
        if name in _ALIGNED and value % ALIGNMENT:
            yield Fault(f"the address {value:#x} of {_SET}{name} {place} is not aligned", f"a multiple of {ALIGNMENT}")

    def _operate(self, name: str, mode: int, place: str) -> Iterator[Fault]:
        self.operations[name] = self.operations.get(name, 0) + 1
        missing = [register for register in needed(name, mode, self.registers) if register not in self.registers]
        if missing:
            listed = ", ".join(f"{_SET}{register}" for register in missing[:3]) + (", ..." if len(missing) > 3 else "")
            yield Fault(f"{_OPERATION}{name} {place} without {listed}", "commands that set all its registers")
            return
        for use in uses(name, mode, self.registers):
            self.uses.append(use)
            yield from self._inside(use, f"{_OPERATION}{name} {place}")

    def _inside(self, use: MemoryAccess, where: str) -> Iterator[Fault]:
        """Yield a fault for an access outside of its region."""
        access = f"{where} {'writes' if use.writes else 'reads'} {use.what}"
        extent = f"bytes {use.begin} to {use.end - 1} of region {use.region}"
        regions = self.regions
        if use.begin < 0:
            yield Fault(f"{access}, {extent}", "an address in the region")
        elif regions is not None and use.region >= len(regions):
            yield Fault(f"{access}, in region {use.region}", f"a region below {len(regions)}")
        elif regions is not None and (size := regions[use.region]) is not None and use.end > size:
            yield Fault(f"{access}, {extent}, which has {counted(size, 'byte')}", "an access inside the region")


def _expected(command: Command) -> str:
    values = "" if command.values is None else f", one of {', '.join(map(str, sorted(command.values)[:16]))}"
    data = "" if command.data_bits is None else f", data within the bits {command.data_bits:#x}"
    return f"a parameter within the bits {command.bits:#x}{values}{data}"


@dataclass(frozen=True)
class Examined:
    """What a payload contains."""

    npu: Npu | None
    """The target NPU; None if it is unknown, which is reported."""
    operations: Mapping[str, int]
    """The number of operations of the NPU by name (CONV, DMA_START, ...); empty for Ethos-U85."""
    uses: Sequence[MemoryAccess]
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
        name = payload.npu.name if payload.npu else ""
        hint = f"compile the model for it: --accelerator-config {npu.name}"
        faults.append(Fault(f"the payload is for {name}, the device is {npu.name}", f"a payload for {npu.name}", hint))
    if faults or payload.npu is None or payload.npu.product == U85:
        return Examined(payload.npu, {}, (), faults)
    walk = _Walk(payload, payload.npu.product, regions)
    return Examined(payload.npu, walk.operations, walk.uses, [*walk.faults, *_writes(walk.uses, constant)])


def _writes(uses: Sequence[MemoryAccess], constant: Set[int]) -> Iterator[Fault]:
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
