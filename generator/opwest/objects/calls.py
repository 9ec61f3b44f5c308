# SPDX-License-Identifier: Apache-2.0
"""The call graph of an object, from its instructions: calls within a section have no relocations.

capstone decodes the instructions; branches are classified by mnemonic. A possible call with an unknown
target counts as an indirect call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from opwest.base.diagnostics import beginning, readable
from opwest.base.frozen_dataclass import dataclass
from opwest.objects import elf as elf_format
from opwest.objects.elf import Elf, RawSymbol, damaged, parse_elf
from opwest.objects.facts import Member
from opwest.objects.relocations import Entry, Relocations

_CONDITIONS = "eq ne cs hs cc lo mi pl vs vc hi ls ge lt gt le al".split()
_ARM_JUMPS = {"b", *(f"b{c}" for c in _CONDITIONS), "cbz", "cbnz"}
_ARM_CALLS = {"bl", "blx", *(f"bl{c}" for c in _CONDITIONS), *(f"blx{c}" for c in _CONDITIONS)} - _ARM_JUMPS
_ARM_RETURNS = {"bx", "bxns", *(f"bx{c}" for c in _CONDITIONS)}
_AARCH64_JUMPS = {"b", "cbz", "cbnz", "tbz", "tbnz"}
_RISCV_CALL_RELOCATIONS = (18, 19)
"""R_RISCV_CALL and R_RISCV_CALL_PLT: an auipc and the following jalr."""
_OVERLAP = 8
"""Limit of passes over the bytes of an object: functions in damaged objects can overlap."""
_RISCV_RELAX = 51
"""R_RISCV_RELAX: a hint to the linker."""


class CallSite(NamedTuple):
    """A code location: a section and an offset in it."""

    section: int
    offset: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function of an object."""

    name: str
    local: bool
    place: CallSite
    callees: frozenset[CallSite | str]
    """Locations in the object, and names of undefined symbols."""
    indirect: bool
    """Whether it may make indirect calls."""


class _Branch(NamedTuple):
    """An instruction that may leave its function; `target` is None if unknown."""

    address: int
    size: int
    target: int | None
    call: bool


class UndecodedError(Exception):
    """The instructions of an object cannot be decoded here, with the reason."""


def functions(member: Member) -> list[Function]:
    """Return the functions of an object with their callees.

    Raises UndecodedError without capstone and for machines that it does not support, ObjectError when the object
    cannot be read.
    """
    elf = parse_elf(member.content)
    return list(_Reader(elf, decoder_of(elf)).all())


def branches(elf: Elf) -> Iterator[tuple[int, int]]:
    """Yield the addresses of the direct branches of a linked image, with those of their targets.

    Raises UndecodedError and ObjectError, as `functions`.
    """
    reader = _Reader(elf, decoder_of(elf))
    for place, end, _ in reader.places():
        start = elf.sections[place.section].address
        for branch in reader.branches(place, end):
            if branch.target is not None:
                yield start + branch.address, start + branch.target


@dataclass(frozen=True, slots=True)
class Code:
    """The instructions of one function."""

    function: str
    content: bytes
    parts: tuple[tuple[int, bytes], ...]
    """Offsets in the section, and instructions there."""
    decoder: Any

    def instructions(self) -> Iterator[tuple[str, str]]:
        """Yield mnemonics and operands."""
        for offset, content in self.parts:
            for _, _, mnemonic, operands in self.decoder.disasm_lite(content, offset):
                yield mnemonic, operands


def code_of(content: bytes) -> Iterator[Code]:
    """Yield the code of each function of an object. Raises UndecodedError and ObjectError, as `functions`."""
    elf = parse_elf(content)
    reader = _Reader(elf, decoder_of(elf))
    for place, end, name in reader.places():
        start = elf.sections[place.section].offset
        parts = tuple((b, content[start + b : start + e]) for b, e in reader.code(place, end))
        yield Code(name, b"".join(part for _, part in parts), parts, reader.decoder)


def decoder_of(elf: Elf) -> Any:
    """Return capstone's decoder; for Arm in Thumb state."""
    try:
        import capstone
    except (ImportError, OSError) as error:  # OSError: its library is missing or is for another machine
        if isinstance(error, ModuleNotFoundError) and error.name == "capstone":
            raise UndecodedError("capstone is not installed") from None
        raise UndecodedError(f"cannot import capstone: {beginning(readable(str(error)))}") from None
    if elf.layout.endian != "little":
        raise UndecodedError("big-endian code")
    kinds = {
        "x86-64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "i386": (capstone.CS_ARCH_X86, capstone.CS_MODE_32),
        "arm": (capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS | capstone.CS_MODE_V8),
        "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
        "riscv": (
            capstone.CS_ARCH_RISCV,
            (capstone.CS_MODE_RISCV64 if elf.layout.bits == 64 else capstone.CS_MODE_RISCV32) | capstone.CS_MODE_RISCVC,
        ),
    }
    if elf.machine_name not in kinds:
        raise UndecodedError(f"code of {elf.machine_name}")
    make: Any = capstone.Cs
    decoder = make(*kinds[elf.machine_name])
    decoder.skipdata = True
    return decoder


class _Reader:
    """Reads one object."""

    def __init__(self, elf: Elf, decoder: Any) -> None:
        self.elf = elf
        self.decoder = decoder
        self.machine = elf.machine_name
        self.symbols = [RawSymbol(0, 0, 0, 0, 0), *elf.symbols()]
        self.strings = elf.symbol_names()
        self.relocations = Relocations(elf)
        self.budget = _OVERLAP * len(elf.content)
        self.starts: dict[int, list[int]] = {}
        self.data: dict[int, list[tuple[int, bool]]] = {}
        self.functions: dict[CallSite, tuple[str, bool, int]] = {}
        for raw in self.symbols[1:]:
            self._note(raw)
        for starts in self.starts.values():
            starts.sort()
        for marks in self.data.values():
            marks.sort()

    def _note(self, raw: RawSymbol) -> None:
        """Record a function, or the start of data or instructions on Arm ($d, $t)."""
        if raw.section <= 0 or not self.elf.sections[raw.section].flags & elf_format.SHF_EXECINSTR:
            return
        name = self.strings.name(raw.name)
        if self.machine in ("arm", "aarch64") and name[:2] in ("$a", "$d", "$t", "$x"):
            offset = raw.value - self.elf.sections[raw.section].address
            self.data.setdefault(raw.section, []).append((offset, name[1] == "d" or name[:2] == "$a"))
            return
        if not name or not self.elf.is_function(raw):
            return
        place = CallSite(raw.section, self.elf.code_offset(raw))
        if place.offset < 0:
            return
        old = self.functions.get(place)
        if old is None:
            self.starts.setdefault(raw.section, []).append(place.offset)
        if old is None or (old[1] and not raw.is_local):
            self.functions[place] = name, raw.is_local, raw.size or (old[2] if old else 0)

    def all(self) -> Iterator[Function]:
        """Yield every function."""
        entries: dict[int, dict[int, list[Entry]]] = {}
        for place, end, name in self.places():
            if place.section not in entries:
                by_offset = entries[place.section] = {}
                for entry in self.relocations.entries(place.section):
                    by_offset.setdefault(entry.offset, []).append(entry)
            yield self._function(name, self.functions[place][1], place, end, entries[place.section])

    def places(self) -> Iterator[tuple[CallSite, int, str]]:
        """Yield every function with its end."""
        for place, (name, _, size) in self.functions.items():
            section = self.elf.sections[place.section]
            if section.kind == elf_format.SHT_NOBITS:
                continue
            if not size:
                starts = self.starts[place.section]
                following = bisect_right(starts, place.offset)
                size = (starts[following] if following < len(starts) else section.size) - place.offset
            end = min(place.offset + size, section.size)
            self.budget -= end - place.offset
            if self.budget < 0:
                raise damaged("functions overlap")
            yield place, end, name

    def _function(
        self, name: str, local: bool, place: CallSite, end: int, entries: Mapping[int, list[Entry]]
    ) -> Function:
        callees: set[CallSite | str] = set()
        indirect = False
        for branch in self.branches(place, end):
            target = self._target(place.section, branch, entries)
            if isinstance(target, CallSite):
                inside = target.section == place.section and place.offset <= target.offset < end
                if inside and not (branch.call and target == place):
                    continue
                if target not in self.functions:
                    indirect = True
                    continue
            if target is None:
                indirect = True
            else:
                callees.add(target)
        return Function(name, local, place, frozenset(callees), indirect)

    def _target(self, section: int, branch: _Branch, entries: Mapping[int, list[Entry]]) -> CallSite | str | None:
        """Return the target of a branch, from its relocation or else its offset."""
        begin = branch.address
        if self.machine == "riscv":
            pairs = [e for e in entries.get(begin - 4, ()) if e.type in _RISCV_CALL_RELOCATIONS]
            if pairs:  # the second half of a pair; the first has the relocation
                return self._symbol(pairs[0], branch)
        for offset in range(begin, begin + branch.size):
            for entry in entries.get(offset, ()):
                if self.machine == "riscv" and entry.type == _RISCV_RELAX:
                    continue
                return self._symbol(entry, branch)
        return None if branch.target is None else CallSite(section, branch.target)

    def _symbol(self, entry: Entry, branch: _Branch) -> CallSite | str | None:
        if entry.symbol >= len(self.symbols):
            return None
        raw = self.symbols[entry.symbol]
        if raw.section == 0:
            return self.strings.name(raw.name) or None
        if raw.section < 0 or not self.elf.sections[raw.section].flags & elf_format.SHF_EXECINSTR:
            return None
        if raw.kind != elf_format.STT_SECTION:
            return CallSite(raw.section, self.elf.code_offset(raw))
        return self._in_section(raw, entry, branch)

    def _in_section(self, raw: RawSymbol, entry: Entry, branch: _Branch) -> CallSite | None:
        """Return the location of a relocation relative to the start of a section."""
        if entry.addend is not None:
            return CallSite(raw.section, entry.addend + (4 if self.machine == "x86-64" else 0))
        if branch.target is None:
            return None
        # The instruction contains the addend: the decoder adds it to the address of the instruction.
        return CallSite(raw.section, branch.target - (entry.offset if self.machine == "i386" else branch.address))

    def branches(self, place: CallSite, end: int) -> Iterator[_Branch]:
        """Yield the instructions of a function that may leave it."""
        start = self.elf.sections[place.section].offset
        read = {"x86-64": _x86, "i386": _x86, "arm": _arm, "aarch64": _aarch64, "riscv": _riscv}[self.machine]
        for begin, stop in self.code(place, end):
            for address, size, mnemonic, operands in self.decoder.disasm_lite(
                self.elf.content[start + begin : start + stop], begin
            ):
                branch = read(address, size, mnemonic, operands)
                if branch is not None:
                    yield branch

    def code(self, place: CallSite, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a function that are instructions."""
        marks = self.data.get(place.section, [])
        at, is_data = place.offset, False
        index = bisect_right(marks, (place.offset, True))
        if index:
            is_data = marks[index - 1][1]
        for offset, data in [*((o, d) for o, d in marks[index:] if o < end), (end, False)]:
            if not is_data and offset > at:
                yield at, offset
            at, is_data = offset, data


def _number(text: str) -> int | None:
    """Return the immediate at the end of operands, None where it is a register or memory."""
    try:
        return int(text.rsplit(",", 1)[-1].strip().lstrip("#"), 0)
    except ValueError:
        return None


def _x86(address: int, size: int, mnemonic: str, operands: str) -> _Branch | None:
    word = mnemonic.rsplit(" ", 1)[-1]  # "notrack jmp"
    if word == "call":
        return _Branch(address, size, _number(operands), True)
    if word.startswith(("j", "loop", "xbegin")):
        return _Branch(address, size, _number(operands), False)
    return None


def _arm(address: int, size: int, mnemonic: str, operands: str) -> _Branch | None:
    word = mnemonic.split(".", 1)[0]
    if word in _ARM_CALLS:
        return _Branch(address, size, _number(operands), True)
    if word in _ARM_JUMPS:
        return _Branch(address, size, _number(operands), False)
    if word in _ARM_RETURNS:
        return None if operands == "lr" else _Branch(address, size, None, True)
    if operands.startswith("pc,") and "[sp]" not in operands and word not in ("tbb", "tbh", "cmp"):
        return _Branch(address, size, None, True)
    return None


def _aarch64(address: int, size: int, mnemonic: str, operands: str) -> _Branch | None:
    if mnemonic == "bl":
        return _Branch(address, size, _number(operands), True)
    if mnemonic in _AARCH64_JUMPS or mnemonic.startswith("b."):
        return _Branch(address, size, _number(operands), False)
    if mnemonic.startswith(("blr", "br")) and mnemonic != "brk":
        return _Branch(address, size, None, True)
    return None


def _riscv(address: int, size: int, mnemonic: str, operands: str) -> _Branch | None:
    word = mnemonic.removeprefix("c.")
    if word in ("jal", "j"):
        distance = _number(operands)
        return _Branch(address, size, None if distance is None else address + distance, word == "jal")
    if word in ("jr", "jalr"):
        return None if (word, operands) == ("jr", "ra") else _Branch(address, size, None, True)
    return None
