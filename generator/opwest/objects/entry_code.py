# SPDX-License-Identifier: Apache-2.0
"""The calling convention of a compiled function, from its instructions.

An attribute (`ms_abi`, `pcs("aapcs")`, `regparm`, `fastcall`) changes the convention of one function. GCC does not
record it in DWARF, and an object without debug information does not record options either. But a function of the C
convention does not use a register that passes no argument before it writes it: its content is undefined. A save
(`push`) is no use, nor is an idiom whose result does not depend on the register (`xor eax, eax`). After a conditional
branch a variable can be undefined too, so a use there counts only if the function uses none of its own arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.calls import UndecodedError, decoder_of
from opwest.objects.elf import SHF_EXECINSTR, SHT_NOBITS, STT_FUNC, STT_NOTYPE, RawSymbol, parse_elf
from opwest.objects.facts import Member, ObjectError
from opwest.objects.register_use import Decoder, Instruction
from opwest.objects.relocations import Relocations

STACK = "the stack"
_X86_64: Mapping[str, tuple[str, ...]] = {
    "rdi": ("rdi", "edi", "di", "dil"),
    "rsi": ("rsi", "esi", "si", "sil"),
    "rdx": ("rdx", "edx", "dx", "dl", "dh"),
    "rcx": ("rcx", "ecx", "cx", "cl", "ch"),
    "r8": ("r8", "r8d", "r8w", "r8b"),
    "r9": ("r9", "r9d", "r9w", "r9b"),
}
_I386: Mapping[str, tuple[str, ...]] = {
    "eax": ("eax", "ax", "al", "ah"),
    "edx": ("edx", "dx", "dl", "dh"),
    "ecx": ("ecx", "cx", "cl", "ch"),
}
_ARM_CORE: Mapping[str, tuple[str, ...]] = {f"r{n}": (f"r{n}",) for n in range(4)}
_ARM_FLOATS: Mapping[str, tuple[str, ...]] = {f"s{n}": (f"s{n}", f"d{n // 2}", f"q{n // 4}") for n in range(16)}


@dataclass(frozen=True)
class CallRegisters:
    """The registers of a function's arguments."""

    watched: Mapping[str, tuple[str, ...]]
    """Registers that pass arguments in any convention, each with the names that contain a part of it."""
    used: tuple[str, ...]
    """Those that pass an argument of this function in the convention of C, in order."""
    decisive: frozenset[str]
    """The places whose use shows that the function has this convention; STACK for arguments on the stack."""

    @cached_property
    def by_part(self) -> dict[str, frozenset[str]]:
        """The watched registers that contain a part, by its name."""
        names: dict[str, frozenset[str]] = {}
        for name, parts in self.watched.items():
            for part in parts:
                names[part] = names.get(part, frozenset()) | {name}
        return names

    @property
    def words(self) -> str:
        """The places of the arguments, for messages."""
        return f"arguments in {', '.join(self.used)}" if self.used else f"arguments on {STACK}"


def call_registers(member: Member, parameters: Sequence[str], result: str) -> CallRegisters | None:
    """Return the registers of a function with C types such as `const int8_t *` and `float`.

    None if every convention of the machine passes these arguments in the same places.
    """
    return _call_registers(member.abi.machine, member.abi.float_abi, tuple(parameters), result)


@lru_cache(maxsize=1024)
def _call_registers(
    machine: str, float_abi: str | None, parameters: tuple[str, ...], result: str
) -> CallRegisters | None:
    if machine == "x86-64":
        whole = [parameter for parameter in parameters if not is_float(parameter)]
        used = tuple(_X86_64)[: len(whole)]
        return CallRegisters(_X86_64, used, frozenset(used[:2]))
    if machine == "i386":
        return CallRegisters(_I386, (), frozenset((STACK,) if parameters else ()))
    if machine != "arm" or not any(map(is_float, (*parameters, result))):
        return None
    if float_abi == "hard":
        used, floats = _with_float_registers(parameters)
        watched = {**_ARM_CORE, **{name: _ARM_FLOATS[name] for name in floats}}
    else:
        used, floats = _base(parameters)
        watched = {**_ARM_CORE, **_ARM_FLOATS}
    return CallRegisters(watched, used, frozenset(floats))


def is_float(c_type: str) -> bool:
    """Return whether a value is passed as a floating-point number."""
    return c_type.strip() in ("float", "double")


def _is_double_word(c_type: str) -> bool:
    return c_type.strip() in ("double", "int64_t", "uint64_t")


def _base(parameters: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the core registers of AAPCS32, 6.4.1 (base standard), and those of floats."""
    used: list[str] = []
    floats: list[str] = []
    at = 0
    for parameter in parameters:
        count = 2 if _is_double_word(parameter) else 1
        at += at % count  # pairs begin at an even register
        taken = [f"r{n}" for n in range(at, at + count) if at + count <= 4]
        used += taken
        floats += taken if is_float(parameter) else []
        at += count
    return tuple(used), tuple(floats)


def _with_float_registers(parameters: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the registers of AAPCS32, 6.1.2 (variant with registers of the FPU), and those of floats."""
    whole, _ = _base([parameter for parameter in parameters if not is_float(parameter)])
    free = list(range(16))
    floats: list[str] = []
    for parameter in filter(is_float, parameters):
        count = 2 if _is_double_word(parameter) else 1
        first = next((n for n in free if n % count == 0 and {n, n + count - 1} <= set(free)), None)
        if first is not None:
            taken = range(first, first + count)
            free = [n for n in free if n not in taken]
            floats += [f"s{n}" for n in taken]
    return (*whole, *floats), tuple(floats)


Verdict = Literal["verified", "unknown", "refused"]
_MAX_INSTRUCTIONS = 400
"""The instructions of a function that are followed at most."""
_MAX_FUNCTION_BYTES = 1 << 20
"""The bytes of a function that are searched for its returns at most."""
_INTERRUPT_RETURNS = frozenset("iret iretd iretq mret sret uret".split())
_RETURNS = {
    "x86-64": (b"\xcf",),
    "i386": (b"\xcf", b"\xc2"),
    "riscv": (b"\x73\x00\x20\x30", b"\x73\x00\x20\x10", b"\x73\x00\x20\x00"),
}
"""Bytes of the instructions iret, and ret with a number; mret, sret and uret."""
_THUNK = "__x86.get_pc_thunk."
"""Functions of i386 that load the program counter and preserve all other registers."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the instructions of a function show about its calling convention."""

    verdict: Verdict
    text: str = ""
    """Of a refused function: the predicate of a sentence."""
    expected: str | None = None


class _Code(NamedTuple):
    """The instructions of a function; offsets are those of its section."""

    decoder: Any
    instructions: Decoder
    machine: str
    content: bytes
    start: int
    end: int
    calls: Mapping[int, str]
    """Relocated places, each with the name of its symbol."""


class EntryCode:
    """The functions of an object; its tables are read once."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._symbols: dict[str, RawSymbol] | None = None
        self._relocated: dict[int, dict[int, str]] = {}
        self._contents: dict[int, bytes] = {}
        """By section."""

    def convention(self, symbol: str, parameters: Sequence[str], result: str) -> Finding:
        """Return whether a function takes its arguments as in C; `parameters` and `result` are C types.

        Unknown for code that cannot be decoded, and for functions whose instructions show nothing.
        """
        machine = self._member.abi.machine
        registers = call_registers(self._member, parameters, result)
        if registers is None and machine not in _RETURNS:
            return Finding("verified")
        try:
            code = self._code(symbol)
            if code is None:
                return Finding("unknown")
            finding = _returns(code)
            if finding is not None or registers is None:
                return finding or Finding("verified")
            return _Walk(code, registers).finding()
        except (ObjectError, UndecodedError):
            return Finding("unknown")

    def _read(self) -> None:
        """Read the tables of the object."""
        self._symbols = {}
        self._elf = parse_elf(self._member.content)
        self._decoder = decoder_of(self._elf)
        self._instructions = Decoder(self._decoder, is_arm=self._elf.machine_name == "arm")
        self._names = self._elf.symbol_names()
        self._by_number = {symbol.number: symbol for symbol in self._elf.symbols()}
        self._relocations = Relocations(self._elf)
        for raw in self._by_number.values():
            if raw.section > 0 and raw.kind in (STT_FUNC, STT_NOTYPE) and not raw.is_local:
                self._symbols[self._names.name(raw.name)] = raw

    def _code(self, symbol: str) -> _Code | None:
        """Return the code of a function; None if the object does not have it as instructions."""
        if self._symbols is None:
            self._read()
        raw = (self._symbols or {}).get(symbol)
        if raw is None:
            return None
        section = self._elf.sections[raw.section]
        is_arm = self._elf.machine_name == "arm"
        if not section.flags & SHF_EXECINSTR or section.kind == SHT_NOBITS or (is_arm and not raw.value & 1):
            return None  # data, or code in Arm state
        start = self._elf.code_offset(raw)
        end = min(start + (raw.size or _MAX_FUNCTION_BYTES), section.size)
        if raw.section not in self._contents:
            self._contents[raw.section] = self._elf.content[section.offset : section.offset + section.size]
        content, calls = self._contents[raw.section], self._calls(raw.section)
        return _Code(self._decoder, self._instructions, self._elf.machine_name, content, start, end, calls)

    def _calls(self, section: int) -> dict[int, str]:
        if section not in self._relocated:
            names = self._relocated[section] = {}
            for entry in self._relocations.entries(section):
                target = self._by_number.get(entry.symbol)
                names[entry.offset] = self._names.name(target.name) if target else ""
        return self._relocated[section]


def _returns(code: _Code) -> Finding | None:
    """Return the finding of a function that returns from an interrupt, or removes its arguments from the stack."""
    part = code.content[code.start : min(code.end, code.start + _MAX_FUNCTION_BYTES)]
    if not any(instruction in part for instruction in _RETURNS.get(code.machine, ())):
        return None
    code.decoder.detail, code.decoder.skipdata = False, True
    for _, _, mnemonic, operands in code.decoder.disasm_lite(part, code.start):
        if mnemonic in _INTERRUPT_RETURNS:
            return Finding("refused", f"returns with {mnemonic!r}, as an interrupt handler", "a function that returns")
        if mnemonic == "ret" and operands and code.machine == "i386":
            text = (
                f"removes {counted(int(operands, 0), 'byte')} of arguments from the stack (stdcall, fastcall or -mrtd)"
            )
            return Finding("refused", text, "a function whose caller removes the arguments")
    return None


class _After(NamedTuple):
    """How code continues after an instruction."""

    goes_on: bool = False
    target: int | None = None
    conditional: bool = False


class _Walk:
    """Follows the instructions of a function from its entry, up to calls."""

    def __init__(self, code: _Code, registers: CallRegisters) -> None:
        self.code = code
        self.registers = registers
        self.names = registers.by_part
        self.is_arm = code.machine == "arm"
        self.own: set[str] = set()
        self.foreign: list[str] = []
        self.certain = False
        """Whether a register without an argument is used before every conditional branch."""
        self.complete = True
        """Whether all instructions that arguments can reach were followed."""
        self.forwarded: set[str] = set()
        """The registers whose content may be an argument of another function."""
        self._walk()

    def finding(self) -> Finding:
        """Return the finding."""
        has_own = self._is_own()
        if self.foreign and (self.certain or (self.complete and not has_own)):
            used = sorted(set(self.foreign), key=list(self.registers.watched).index)
            text = f"uses the content of {' and '.join(used)} at its begin, where C passes no argument of it"
            return Finding("refused", text, self.registers.words)
        if self.code.machine == "i386":  # one convention passes some arguments on the stack, the others in registers
            fits = not self.foreign and not self.forwarded
        else:
            fits = has_own or (self.complete and not self.foreign and not self.own)
        return Finding("verified" if fits else "unknown")

    def _is_own(self) -> bool:
        """Whether the function uses an argument where only C passes it."""
        return bool(self.own & self.registers.decisive)

    def _walk(self) -> None:
        waiting: list[tuple[int, frozenset[str], bool]] = [(self.code.start, frozenset(), True)]
        seen: set[int] = set()
        while waiting:
            at, known, straight = waiting.pop()
            written = set(known)
            goes_on = True
            while goes_on and at < self.code.end and at not in seen:
                if len(seen) >= _MAX_INSTRUCTIONS:
                    self.complete = False
                    return
                seen.add(at)
                instruction = self.code.instructions.at(self.code.content, at, self.code.end)
                if instruction is None:  # an extension that capstone lacks; it may write any register
                    self.complete = False
                    written |= self.registers.watched.keys() - set(self.registers.used)
                    goes_on, at = self.is_arm, at + 4
                    continue
                self._note(instruction, written, straight=straight)
                after = self._after(instruction, at, written)
                at += instruction.size
                goes_on = after.goes_on
                if after.target is not None:
                    straight = straight and not goes_on
                    waiting.append((after.target, frozenset(written), straight))
                straight = straight and not after.conditional
                if not straight and not self.certain and self._is_own() and self.code.machine != "i386":
                    return  # nothing can refuse it

    def _after(self, instruction: Instruction, at: int, written: set[str]) -> _After:
        """Return how the code continues after the instruction at an offset."""
        kind, conditional = instruction.kind, instruction.conditional
        if kind == "other":
            return _After(goes_on=True)
        if kind == "return":
            return _After(goes_on=conditional, conditional=conditional)
        calls = self.code.calls
        called = next((calls[n] for n in range(at, at + instruction.size) if n in calls), None)
        if kind == "call":
            if called is not None and called.startswith(_THUNK):
                written |= self._all([f"e{called.removeprefix(_THUNK)}"])
                return _After(goes_on=True)
            self._forward(written)
            return _After(goes_on=conditional, conditional=conditional)
        target = None if instruction.distance is None else at + instruction.distance
        if called is not None or target is None or not self.code.start <= target < self.code.end:
            self._forward(written)
            target = None
        return _After(goes_on=conditional, target=target, conditional=conditional)

    def _forward(self, written: set[str]) -> None:
        """Note that another function may take arguments in the registers that are not written."""
        self.complete = False
        self.forwarded |= self.registers.watched.keys() - written

    def _note(self, instruction: Instruction, written: set[str], *, straight: bool) -> None:
        """Record the registers that an instruction uses, and those that it writes."""
        for name in self._all(instruction.reads) - written:
            if name in self.registers.used:
                self.own.add(name)
        for name in sorted(self._all(instruction.uses) - written):
            if name not in self.registers.used:
                self.foreign.append(name)
                self.certain |= straight
        if self.code.machine == "i386" and instruction.uses_stack_argument:
            self.own.add(STACK)
        written |= self._all(instruction.writes)

    def _all(self, names: Iterable[str]) -> set[str]:
        """Return the watched registers that contain a part of any of the registers."""
        return {whole for name in names for whole in self.names.get(name, ())}
