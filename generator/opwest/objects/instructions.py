# SPDX-License-Identifier: Apache-2.0
"""Instructions with effects that are not visible in the arguments of an operator: system calls, special registers.

Compiled code is decoded by capstone, as for the call graph (`calls.py`). Functions whose bytes cannot contain such an
instruction are not decoded. The instructions of inline assembly in C sources are read from their text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from opwest.base.frozen_dataclass import dataclass
from opwest.base.resources import script
from opwest.objects.calls import Code, UndecodedError, code_of
from opwest.objects.facts import CSource, Member, ObjectError
from opwest.objects.library_symbols import HiddenEffect

_CANDIDATES = {
    # svc, smc and hvc, cps and msr, vmsr, hints (wfi, wfe, sev), bkpt; little-endian halfwords
    "arm": rb"[\x00-\xff]\xdf|[\xe0-\xf0]\xf7|[\x60-\x7f]\xb6|[\x80-\xaf]\xf3|\xe1\xee|[\x10-\x40]\xbf|[\x00-\xff]\xbe",
    "aarch64": rb"[\x00-\x1f]\xd4|[\x00-\x3f]\xd5",
    "riscv": rb"[\x73\xf3]",
    "x86-64": rb"\x0f[\x01\x05\x31\x34\xae\xc7]|\xcd|[\xd9\xdd]|[\xe4-\xe7\xec-\xef\xfa\xfb\xf4]|\xc5\xf8\xae",
}
_CANDIDATES["i386"] = _CANDIDATES["x86-64"]
_CONTROL = frozenset(
    "svc smc hvc bkpt cps cpsid cpsie wfi wfe sev ecall mret syscall sysenter cli sti hlt int swi".split()
)
_RANDOM = frozenset("rdtsc rdtscp rdrand rdseed rdcycle rdcycleh rdtime rdtimeh rdinstret rdinstreth".split())
_PORTS = frozenset("in inb inw inl out outb outw outl insb insw insd insl outsb outsw outsd outsl".split())
_LOADS_FENV = frozenset("ldmxcsr vldmxcsr fldcw fldenv fsrm fsrmi fscsr fsflags fsflagsi fninit finit".split())
_STORES_FENV = frozenset("stmxcsr vstmxcsr fnstcw fstcw fnstenv frrm frcsr frflags".split())
_FENV_REGISTERS = frozenset("fpscr fpcr fpsr frm fcsr fflags".split())
_CLOCKS = frozenset("cycle cycleh time timeh instret instreth cntvct_el0 cntpct_el0 pmccntr_el0".split())
_PLAIN_REGISTERS = re.compile(r"apsr\w*|cpsr_f|nzcv|fpscr_nzcvqc|vpr|p0|vxrm|vxsat|vcsr|tpidr\w*")
_WRITES = frozenset("msr vmsr csrw csrs csrc csrwi csrsi csrci csrrw csrrs csrrc csrrwi csrrsi csrrci".split())
_READS = frozenset("mrs vmrs csrr".split())
_FLAGS = ("fsflags", "frflags")
_ASM = re.compile(rb"\b(?:asm|__asm|__asm__)\b\s*(?:(?:volatile|__volatile__|__volatile|goto|inline)\b\s*)*\(")
_STRING = re.compile(rb'\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONDITIONAL = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HiddenInstruction:
    """An instruction with an effect."""

    function: str
    """Empty for inline assembly of a source."""
    text: str
    """Mnemonic and operands: `svc #0`."""
    effect: str
    """`control`, `io`, `nondeterminism` or `fenv`, as in zephyr_module/scripts/effects.py."""


def hidden_instructions(item: Member | CSource) -> tuple[HiddenInstruction, ...]:
    """Return the instructions with effects; empty if the code cannot be decoded here."""
    return _of_source(item.text) if isinstance(item, CSource) else _of_object(item.content, item.abi.machine)


def instruction_effects(item: Member | CSource, permitted: Collection[str] = frozenset()) -> list[HiddenEffect]:
    """Return the effects of instructions that are not permitted."""
    return [
        HiddenEffect(*script("effects").instruction(instruction.text, instruction.function, instruction.effect))
        for instruction in hidden_instructions(item)
        if instruction.effect not in permitted
    ]


@lru_cache(maxsize=512)
def _of_object(content: bytes, machine: str) -> tuple[HiddenInstruction, ...]:
    candidate = re.compile(_CANDIDATES.get(machine, rb"(?!)"), re.DOTALL)
    if candidate.search(content) is None:
        return ()
    instructions: list[HiddenInstruction] = []
    try:
        for code in code_of(content):
            if candidate.search(code.content) is not None:
                instructions += _of_function(code)
    except (UndecodedError, ObjectError):
        return ()
    return tuple(instructions)


def _of_function(code: Code) -> Iterator[HiddenInstruction]:
    """Yield the instructions of a function, one for each effect.

    Compilers save, change and restore the control word of the x87 around conversions, and the flags of RISC-V around
    quiet comparisons: a function that restores the environment has no effect. On x86 that applies to the x87 and to
    MXCSR.
    """
    changes: dict[str, list[str]] = {"fpu": [], "sse": []}
    saved: set[str] = set()
    seen: set[str] = set()
    for mnemonic, operands in code.instructions():
        text = f"{mnemonic} {operands}".strip()
        effect = effect_of(mnemonic, operands)
        unit = "sse" if mnemonic.endswith("mxcsr") else "fpu"
        if effect is None:
            if _saves_fenv(mnemonic, operands):
                saved.add(unit)
        elif "fpu" in saved and mnemonic == "fldenv":  # restores all of the x87
            changes["fpu"].clear()
        elif effect == "fenv":
            if not (saved and mnemonic in _FLAGS):
                changes[unit].append(text)
        elif effect not in seen:
            seen.add(effect)
            yield HiddenInstruction(code.function, text, effect)
    for unit, texts in changes.items():
        if texts and not (unit in saved and len(texts) % 2 == 0):
            yield HiddenInstruction(code.function, texts[0], "fenv")
            break


def effect_of(mnemonic: str, operands: str) -> str | None:
    """Return the effect of one instruction, None without one."""
    word = mnemonic.lower().rsplit(" ", 1)[-1].split(".")[0]
    registers = [register.strip().lower().lstrip("%") for register in operands.split(",")]
    if word in _CONTROL:
        return "control"
    if word in _RANDOM or (word in _READS and not _CLOCKS.isdisjoint(registers)):
        return "nondeterminism"
    if word in _PORTS:
        return "io"
    if word in _LOADS_FENV:
        return "fenv"
    if word not in _WRITES or (word.startswith("csr") and word[3:] in ("rs", "rc") and registers[-1] in ("zero", "x0")):
        return None
    special = registers[1] if word.startswith("csrr") and len(registers) > 1 else registers[0]
    if special in _FENV_REGISTERS:
        return "fenv"
    return None if _PLAIN_REGISTERS.fullmatch(special) else "control"


def _saves_fenv(mnemonic: str, operands: str) -> bool:
    names = [name.strip().lower() for name in operands.split(",")]
    is_read = mnemonic in _READS and not _FENV_REGISTERS.isdisjoint(names[1:])
    return mnemonic in _STORES_FENV or (is_read and _PLAIN_REGISTERS.fullmatch(names[0]) is None)


def _of_source(text: bytes) -> tuple[HiddenInstruction, ...]:
    """Return the instructions of inline assembly, without those in conditionals of the preprocessor."""
    if _ASM.search(text) is None:
        return ()
    plain = _COMMENT.sub(lambda match: b" " * len(match[0]), text)
    by_effect: dict[str, HiddenInstruction] = {}
    for start in _ASM.finditer(plain):
        words = [match[1] for match in _CONDITIONAL.finditer(plain, 0, start.start())]
        if 2 * words.count(b"endif") < len(words):
            continue
        for line in _lines(plain, start.end()):
            mnemonic, _, operands = line.partition(" ")
            effect = effect_of(mnemonic, operands)
            if effect is not None:
                by_effect.setdefault(effect, HiddenInstruction("", line, effect))
    return tuple(by_effect.values())


def _lines(text: bytes, at: int) -> Iterator[str]:
    """Yield the instructions of the string literals at an offset."""
    template = b""
    while (match := _STRING.match(text, at)) is not None:
        template += match[1]
        at = match.end()
    for line in re.split(r"\\n|;", template.decode("utf-8", "replace").replace("\\t", " ").replace("%%", "%")):
        if line.strip():
            yield " ".join(line.split())
