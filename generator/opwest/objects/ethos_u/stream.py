# SPDX-License-Identifier: Apache-2.0
"""The walk through a command stream of Ethos-U55 and U65: every command known, every access inside its region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.objects.ethos_u.commands import COMMANDS, HAS_DATA, Command, MemoryAccess, fault_of, needed, uses
from opwest.objects.ethos_u.payload import ALIGNMENT, FAMILY, MAX_FAULTS, NPUS, U85, Fault, Npu, is_npu, read_payload

_STOP = "NPU_OP_STOP"
_SET = "NPU_SET_"
_OPERATION = "NPU_OP_"
_ADDRESS_BITS = 40
_ALIGNED = ("WEIGHT_BASE", "WEIGHT1_BASE")
"""Registers with addresses that are multiples of ALIGNMENT."""


@dataclass(eq=False)
class Walk:
    """What was found in a stream."""

    operations: dict[str, int] = field(default_factory=dict)
    """The number of operations by name, without NPU_OP_."""
    uses: list[MemoryAccess] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    """At most the first eight."""


def walk(stream: Sequence[int], product: int, start: int, regions: Sequence[int | None] | None) -> Walk:
    """Return the operations and accesses of a stream, with its faults.

    `start` is the position of the stream in the payload, bytes; `regions` are the sizes of the regions, bytes; None:
    all are unknown, or this one.
    """
    found = Walk()
    registers: dict[str, int] = {}
    for fault in _commands(stream, product, start, regions, found, registers):
        found.faults.append(fault)
        if len(found.faults) == MAX_FAULTS:
            break
    return found


def _commands(
    stream: Sequence[int],
    product: int,
    start: int,
    regions: Sequence[int | None] | None,
    found: Walk,
    registers: dict[str, int],
) -> Iterator[Fault]:
    known = COMMANDS[product]
    at, name = 0, ""
    while at < len(stream):
        word, place = stream[at], f"at byte {start + at * 4} of the payload"
        command = known.get(word & 0xFFFF)
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
            yield from _set(name.removeprefix(_SET), word, data, command, registers, place)
        elif name == _STOP and at < len(stream):
            yield Fault(f"{_STOP} {place} is followed by {len(stream) - at} words", f"{_STOP} at the end")
            return
        else:
            yield from _operate(name.removeprefix(_OPERATION), word >> 16, registers, regions, found, place)
    if name != _STOP:
        yield Fault(f"the command stream ends with {name or 'nothing'}", _STOP, "the payload is truncated")


def _expected(command: Command) -> str:
    values = "" if command.values is None else f", one of {', '.join(map(str, sorted(command.values)[:16]))}"
    data = "" if command.data_bits is None else f", data within the bits {command.data_bits:#x}"
    return f"a parameter within the bits {command.bits:#x}{values}{data}"


def _set(name: str, word: int, data: int, command: Command, registers: dict[str, int], place: str) -> Iterator[Fault]:
    """Set a register: the parameter, or the data with its extension; addresses and strides are signed."""
    if command.data_bits is None:
        registers[name] = word >> 16
        return
    is_address = any(part in name for part in ("BASE", "STRIDE", "DMA0"))
    value = data
    if is_address:
        bits = _ADDRESS_BITS if command.bits else 32
        value |= word >> 16 << 32
        value -= (value >> (bits - 1)) << bits
    registers[name] = value
    if name in _ALIGNED and value % ALIGNMENT:
        yield Fault(f"the address {value:#x} of {_SET}{name} {place} is not aligned", f"a multiple of {ALIGNMENT}")


def _operate(
    name: str, mode: int, registers: dict[str, int], regions: Sequence[int | None] | None, found: Walk, place: str
) -> Iterator[Fault]:
    found.operations[name] = found.operations.get(name, 0) + 1
    missing = [one for one in needed(name, mode, registers) if one not in registers]
    if missing:
        listed = ", ".join(f"{_SET}{one}" for one in missing[:3]) + (", ..." if len(missing) > 3 else "")
        yield Fault(f"{_OPERATION}{name} {place} without {listed}", "commands that set all its registers")
        return
    for use in uses(name, mode, registers):
        found.uses.append(use)
        yield from _inside(use, regions, f"{_OPERATION}{name} {place}")


def _inside(use: MemoryAccess, regions: Sequence[int | None] | None, where: str) -> Iterator[Fault]:
    """Yield a fault for an access outside of its region."""
    access = f"{where} {'writes' if use.writes else 'reads'} {use.what}"
    extent = f"bytes {use.begin} to {use.end - 1} of region {use.region}"
    if use.begin < 0:
        yield Fault(f"{access}, {extent}", "an address in the region")
    elif regions is not None and use.region >= len(regions):
        yield Fault(f"{access}, in region {use.region}", f"a region below {len(regions)}")
    elif regions is not None and (size := regions[use.region]) is not None and use.end > size:
        yield Fault(f"{access}, {extent}, which has {size} bytes", "an access inside the region")


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
        found = payload.npu.name if payload.npu else ""
        hint = f"compile the model for it: --accelerator-config {npu.name}"
        faults.append(Fault(f"the payload is for {found}, the device is {npu.name}", f"a payload for {npu.name}", hint))
    if faults or payload.npu is None or payload.npu.product == U85:
        return Examined(payload.npu, {}, (), faults)
    walked = walk(payload.stream, payload.npu.product, payload.start, regions)
    return Examined(payload.npu, walked.operations, walked.uses, [*walked.faults, *_writes(walked.uses, constant)])


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
