# SPDX-License-Identifier: Apache-2.0
"""Determine the frame size of functions, from `.su` files and from sections of the object.

Callees are not included. All figures count as GCC's `-fstack-usage` does:

- On x86 the call pushes the return address, and it counts (8 bytes on x86-64, 4 on i386). The
  canonical frame address of DWARF lies above it as well, so offsets need no change; LLVM does not
  count it, neither in `.stack_sizes` nor in its `.su` files, so it is added there.
- Outgoing arguments that are pushed count, arguments that the caller pushed do not. LLVM's figures
  omit them on x86, and GCC's on Arm omit the registers that a variadic function saves; unwind data
  include both. If sources differ, the larger size is used.
- The red zone of x86-64 (up to 128 bytes below the stack pointer of a leaf) does not count.

A function without data is unknown, never 0.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.dwarf_units import uleb
from opwest.objects.elf import SHT_ARM_EXIDX, SHT_NOBITS, Elf, parse_elf
from opwest.objects.facts import Member, ObjectError
from opwest.objects.relocations import Relocations
from opwest.objects.unwind_tables import Frame, cfi_frames, exidx_frames

Source = Literal[".su", ".stack_sizes", ".debug_frame", ".eh_frame", ".ARM.exidx"]

_RETURN_ADDRESS = {"x86-64": 8, "i386": 4}
_MAX_SU = 1 << 26
# GCC: file:line:column:function; clang: file:line:function. The file name may contain colons.
_PLACE = re.compile(r".*?:\d+:(?P<column>\d+:)?(?P<function>.+)", re.DOTALL)
_SU_KINDS = ("static", "dynamic", "dynamic,bounded")


@dataclass(frozen=True, slots=True)
class StackUse:
    """Bytes of stack for the frame of one function; None if unknown."""

    bytes: int | None = None
    source: Source | None = None
    exact: bool = True
    """False if `bytes` is a lower bound: the stack pointer changes in a way that is not described."""

    @property
    def known(self) -> bool:
        """Whether `bytes` is the size, not only a lower bound."""
        return self.bytes is not None and self.exact

    def __str__(self) -> str:
        if self.bytes is None:
            return "unknown"
        unit = "byte" if self.bytes == 1 else "bytes"
        return f"{'' if self.exact else 'at least '}{self.bytes} {unit}"


UNKNOWN = StackUse()


@dataclass(frozen=True, slots=True)
class StackEntry:
    """A line of a `.su` file."""

    bytes: int
    """As written; for a `dynamic` function, the fixed part."""
    exact: bool
    """Whether `bytes` is an upper bound; false if the frame depends on values (alloca)."""
    from_clang: bool
    """Whether clang wrote the line: without a column, unlike GCC."""


def read_su(path: Path) -> dict[str, StackEntry]:
    """Return the entries of a `.su` file by function (`-fstack-usage` of GCC and clang).

    For duplicate names (static functions, concatenated files), the larger entry counts.
    """
    try:
        if path.stat().st_size > _MAX_SU:
            raise ObjectError(f"{path.name} has more than {_MAX_SU} bytes", "a .su file written by a compiler")
        content = path.read_text("utf-8", "backslashreplace")
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise ObjectError(f"{path.name}: cannot read the file: {reason}", "a .su file written by a compiler") from fault
    entries: dict[str, StackEntry] = {}
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        name, entry = _su_line(path.name, number, line.rstrip("\r"))
        known = entries.get(name)
        if known is None or (entry.exact, -entry.bytes) < (known.exact, -known.bytes):
            entries[name] = entry
    return entries


def _su_line(file: str, number: int, line: str) -> tuple[str, StackEntry]:
    fields = line.rsplit("\t", 2)
    place = _PLACE.fullmatch(fields[0]) if len(fields) == 3 else None
    kind = fields[-1].strip()
    if place is None or kind not in _SU_KINDS or not re.fullmatch(r"[0-9]{1,18}", fields[1]):
        raise ObjectError(
            f"{file}: line {number} does not have the format of a .su file",
            "file:line:column:function, tab, bytes, tab, static or dynamic",
            "create the file with -fstack-usage",
        )
    return place["function"], StackEntry(int(fields[1]), kind != "dynamic", place["column"] is None)


def stack_usage(member: Member, su: Mapping[str, StackEntry | int] | None = None) -> dict[str, StackUse]:
    """Return the frame size of each function of an object, without callees.

    `su` is the result of `read_su`, or plain sizes in bytes as counted by GCC. All sources are read: `su`,
    `.stack_sizes`, `.debug_frame`, `.eh_frame`, `.ARM.exidx`. The largest figure is used, and of equal ones
    the first exact one. The result includes local functions; for duplicate names, a global function takes
    precedence, then the worst figure. Raises ObjectError if the object cannot be read; damaged unwind data
    leave functions unknown.
    """
    elf = parse_elf(member.content)
    names = _functions(elf)
    by_place: dict[tuple[int, int], StackUse] = {}
    extra = _RETURN_ADDRESS.get(elf.machine_name, 0)
    for source, frames in _sources(Relocations(elf), extra):
        for frame in frames:
            place = frame.section, frame.offset
            if place in names:
                by_place[place] = _better(by_place.get(place, UNKNOWN), StackUse(frame.bytes, source, frame.exact))
    result: dict[str, tuple[bool, StackUse]] = {}
    for place, functions in names.items():
        for name, local in functions:
            use = _from_su(su, name, extra) if su else None
            use = _better(use or UNKNOWN, by_place.get(place, UNKNOWN))
            old = result.get(name)
            if old is None or (local, _rank(use)) < (old[0], _rank(old[1])) or (not local and old[0]):
                result[name] = local, use
    return {name: use for name, (_local, use) in result.items()}


def _rank(use: StackUse) -> tuple[int, int]:
    """Return a sort key, worst first: unknown, then lower bounds, then the largest."""
    return (0, 0) if use.bytes is None else (2 if use.exact else 1, -use.bytes)


def _better(old: StackUse, new: StackUse) -> StackUse:
    """Return the larger figure; of equal ones the exact one, then the first."""
    if old.bytes is None or new.bytes is None:
        return new if old.bytes is None else old
    return new if (new.bytes, new.exact) > (old.bytes, old.exact) else old


def _from_su(su: Mapping[str, StackEntry | int], name: str, extra: int) -> StackUse | None:
    """Return the `.su` entry of a function; GCC omits the number of a clone (`f.constprop.0`)."""
    entry = su.get(name, su.get(re.sub(r"\.\d+$", "", name)))
    if entry is None:
        return None
    if isinstance(entry, int):
        return StackUse(entry, ".su")
    return StackUse(entry.bytes + (extra if entry.from_clang else 0), ".su", entry.exact)


def _functions(elf: Elf) -> dict[tuple[int, int], list[tuple[str, bool]]]:
    """Return names of functions, and whether they are local, by section and offset."""
    functions: dict[tuple[int, int], list[tuple[str, bool]]] = {}
    strings = elf.symbol_names()
    for raw in filter(elf.is_function, elf.symbols()):
        name = strings.name(raw.name)
        if name:
            functions.setdefault((raw.section, elf.code_offset(raw)), []).append((name, raw.is_local))
    return functions


def _sources(relocations: Relocations, extra: int) -> Iterable[tuple[Source, list[Frame]]]:
    """Yield the frames of each section with frames, in order of preference."""
    elf = relocations.elf
    by_name: dict[str, list[int]] = {".stack_sizes": [], ".debug_frame": [], ".eh_frame": []}
    tables: list[int] = []
    for index, section in enumerate(elf.sections):
        if section.kind == SHT_NOBITS:
            continue
        if section.kind == SHT_ARM_EXIDX and elf.machine_name == "arm":
            tables.append(index)
        elif section.name in by_name:
            by_name[section.name].append(index)
    for index in by_name[".stack_sizes"]:
        yield ".stack_sizes", _collect(_stack_sizes(relocations, index, extra))
    for index in by_name[".debug_frame"]:
        yield ".debug_frame", _cfi(relocations, index, eh=False)
    for index in by_name[".eh_frame"]:
        yield ".eh_frame", _cfi(relocations, index, eh=True)
    for index in tables:
        yield ".ARM.exidx", _collect(exidx_frames(relocations, index))


def _collect(frames: Iterable[Frame]) -> list[Frame]:
    """Return the frames before the first damaged entry."""
    collected: list[Frame] = []
    with contextlib.suppress(ObjectError):
        collected.extend(frames)
    return collected


def _cfi(relocations: Relocations, index: int, *, eh: bool) -> list[Frame]:
    elf = relocations.elf
    try:
        data, targets = relocations.patched(index), relocations.targets(index)
    except ObjectError:
        return []
    frames = _collect(cfi_frames(data, targets, elf.layout, elf.machine_name, eh=eh))
    if elf.machine_name == "arm":
        return [f._replace(offset=f.offset & ~1) for f in frames]
    return frames


def _stack_sizes(relocations: Relocations, index: int, extra: int) -> Iterable[Frame]:
    """Yield the entries of LLVM's `.stack_sizes`: an address and a ULEB128 number each.

    LLVM writes no entry for a function whose frame is dynamic, so that each is exact. Source: LLVM's
    "Code Generator" manual, "Emitting function stack size information".
    """
    elf = relocations.elf
    data, targets = elf.data(elf.sections[index]), relocations.targets(index)
    at, pointer = 0, elf.layout.bits // 8
    while at < len(data):
        target = targets.get(at)
        size, at = uleb(data, at + pointer)
        if target is not None and size < 1 << 31:
            section, offset = target
            yield Frame(section, offset & ~1 if elf.machine_name == "arm" else offset, size + extra, True)
