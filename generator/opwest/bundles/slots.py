# SPDX-License-Identifier: Apache-2.0
"""The slot of a bundle: an address, or a partition of a Zephyr build."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.bundles.client import LARGER_HINT, BundleClient, Outcome
from opwest.bundles.devicetree import TreeError, partition
from opwest.bundles.faults import NO_BUNDLE, Verdict, read_verdict, version_text
from opwest.bundles.format import HEADER_SIZE, IMAGE_ALIGN, LLEXT, Bundle
from opwest.bundles.link import NO_SLOT, Job
from opwest.runs.link import LinkError

_NUMBER = r"0[xX][0-9a-fA-F]+|[0-9]+"
_ADDRESS = re.compile(rf"({_NUMBER})(?::({_NUMBER})([kKmM]?))?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a bundle in memory."""

    address: int
    size: int | None
    """Bytes; None if unknown."""


def read_slot(text: str, build: Path | None, faults: Diagnostics) -> Slot | None:
    """Return a slot: `ADDRESS[:SIZE]`, or a partition by node label or label; None after an error."""
    match = _ADDRESS.fullmatch(text)
    if match is not None:
        size = int(match[2], 0) * _UNITS[match[3].lower()] if match[2] else None
        slot = Slot(int(match[1], 0), size)
    elif re.match(r"[0-9]", text):
        faults.error(f"invalid slot {text!r}", expected="ADDRESS, ADDRESS:SIZE such as 0x80000:64K, or a partition")
        return None
    elif build is None:
        faults.error(f"--slot: partition {text!r} requires the build that defines it", expected="--build DIR")
        return None
    elif (partition_slot := _of_partition(text, build, faults)) is not None:
        slot = partition_slot
    else:
        return None
    is_aligned = slot.address % IMAGE_ALIGN == 0
    if not is_aligned:
        faults.error(f"--slot: address 0x{slot.address:x} is misaligned", expected=f"a multiple of {IMAGE_ALIGN}")
    is_large = slot.size is None or slot.size > HEADER_SIZE
    if not is_large:
        faults.error(f"--slot: the slot has {slot.size} bytes", expected=f"more than {HEADER_SIZE}")
    return slot if is_aligned and is_large else None


def _of_partition(name: str, build: Path, faults: Diagnostics) -> Slot | None:
    path = build / "zephyr" / "zephyr.dts"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        faults.error(
            f"cannot read the devicetree of the build: {error.strerror}",
            Location(str(path)),
            hint="--build is a build directory of west; with sysbuild, its directory of the application",
        )
        return None
    try:
        address, size = partition(text, name)
    except TreeError as error:
        faults.error(error.message, Location(str(path), error.line, 1 if error.line else 0), hint=error.hint)
        return None
    return Slot(address, size)


_ACTIVE, _TRYING, _PREVIOUS, _TARGET = 1, 2, 4, 8


@dataclass(frozen=True)
class Model:
    """The header of a bundle in a slot."""

    name: str
    version: int
    length: int
    """Bytes of the signed part."""
    kind: int
    interface_hash: int
    model_hash: bytes


@dataclass(frozen=True)
class BoardSlot:
    """A slot; `roles` are `active`, `trying`, `previous` and `next`."""

    index: int
    address: int
    size: int
    roles: tuple[str, ...]
    verdict: Verdict
    model: Model | None

    def as_text(self) -> str:
        """Return one line of text."""
        roles = f" ({', '.join(self.roles)})" if self.roles else ""
        text = f"slot {self.index} at 0x{self.address:x}, {self.size} bytes{roles}: "
        if self.model is None:
            return text + ("empty" if self.verdict.fault == NO_BUNDLE else self.verdict.reason)
        text += f"{self.model.name} {version_text(self.model.version)}"
        return text if self.verdict.is_good else f"{text}; refused: {self.verdict.reason}"

    def as_json(self) -> dict[str, object]:
        """Return the value for JSON output."""
        model = self.model and {
            **asdict(self.model),
            "version": version_text(self.model.version),
            "interface_hash": f"{self.model.interface_hash:016x}",
            "model_hash": self.model.model_hash.hex(),
        }
        return {
            "slot": self.index,
            "address": self.address,
            "size": self.size,
            "roles": list(self.roles),
            "verdict": self.verdict.as_json(),
            "model": model,
        }


@dataclass(frozen=True)
class State:
    """The records of the board: slots, or NO_SLOT; `fault` is the end of the latest trial."""

    active: int
    trying: int
    previous: int
    crashes: int
    fault: int
    fault_name: str


@dataclass(frozen=True)
class File:
    """A bundle that the user gave."""

    path: Path
    bundle: Bundle

    @property
    def place(self) -> str:
        """Its slot as text."""
        content = self.bundle.content
        return "any slot" if content.kind == LLEXT else f"0x{content.slot_address:x}"


def check(done: Outcome, what: str, device: str) -> Outcome:
    """Return a job that succeeded. Raises LinkError."""
    if done.result == 0:
        return done
    raise LinkError(f"{device}: {what}: {done.error or f'error {done.result}'}")


def read_slots(client: BundleClient) -> list[BoardSlot]:
    """Return the slots of a board."""
    slots = []
    for index in range(client.info.slots):
        done = check(client.ask(Job.LIST, f"the description of slot {index}", slot=index), "cannot list", client.device)
        fields = done.fields
        roles = fields.number("is")
        named = ((_ACTIVE, "active"), (_TRYING, "trying"), (_PREVIOUS, "previous"), (_TARGET, "next"))
        model = None
        if "name" in fields:
            version, length, kind, interface = map(fields.number, ("version", "length", "kind", "interface"))
            model = Model(fields.text("name"), version, length, kind, interface, fields.bytes("model"))
        slots.append(
            BoardSlot(
                *(index, fields.number("address"), fields.number("size")),
                tuple(name for bit, name in named if roles & bit),
                *(read_verdict(fields), model),
            )
        )
    return slots


def read_state(client: BundleClient) -> State:
    """Return the records of a board."""
    fields = check(client.ask(Job.STATE, "the state of the slots"), "cannot read the state", client.device).fields
    active, trying, previous, crashes, fault = map(fields.number, ("active", "trying", "previous", "crashes", "fault"))
    return State(active, trying, previous, crashes, fault, fields.text("fault_name"))


def choose(
    files: Sequence[File], slots: Sequence[BoardSlot], format_version: int, device: str
) -> tuple[File, BoardSlot]:
    """Return the file for the slot that the board uses next. Raises LinkError that lists files and slots."""
    target = next((slot for slot in slots if "next" in slot.roles), None)
    if target is None:
        trying = next((slot.index for slot in slots if "trying" in slot.roles), NO_SLOT)
        raise LinkError(
            f"{device}: the board accepts no upload"
            + (f": the model in slot {trying} is not confirmed" if trying != NO_SLOT else ""),
            "confirm it (opwest bundle --confirm) or go back (opwest bundle --roll-back)",
        )
    for file in files:
        content = file.bundle.content
        if content.kind != LLEXT and content.slot_address != target.address:
            continue
        if len(file.bundle.data) > target.size:
            raise LinkError(
                f"'{file.path}' has {len(file.bundle.data)} bytes, slot {target.index} of {device} {target.size}",
                LARGER_HINT,
            )
        return file, target
    given = ", ".join(f"'{file.path}' for {file.place}" for file in files)
    known = ", ".join(f"slot {slot.index} at 0x{slot.address:x}" for slot in slots)
    raise LinkError(
        f"no file for slot {target.index} at 0x{target.address:x}, which {device} uses next; files: {given}; "
        f"slots: {known}; format version {format_version}",
        "give one file for each slot: opwest bundle MANIFEST --slot ADDRESS",
    )
