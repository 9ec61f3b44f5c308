# SPDX-License-Identifier: Apache-2.0
"""What single instructions do with registers, and how code continues after them.

Most instructions of an object occur in it several times, and reading the details of one from capstone takes long:
each is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

# Instructions with the operands, besides addresses, whose content they use: those after the first, or all.
_X86_SOURCES = frozenset("mov movzx movsx movsxd add sub imul and or xor".split())
_X86_READS = frozenset(("cmp", "test"))
_ARM_SOURCES = frozenset(
    "mov movs mvn mvns add adds sub subs rsb rsbs mul muls and ands orr orrs lsl lsls lsr lsrs asr asrs sxth uxth sxtb "
    "uxtb vmov vadd vsub vmul vdiv vneg vabs vcvt vsqrt".split()
)
_ARM_READS = frozenset("cmp cmn tst cbz cbnz vcmp vcmpe str strb strh strd vstr".split())
_SAVES = frozenset("push vpush nop xchg".split())
_ARM_LOADS = ("ldm", "vldm", "pop", "vpop")
_ARM_MULTIPLE = ("ldm", "stm", "vldm", "vstm")
_MAX_SIZE = 16
"""No instruction has more bytes."""
_MAX_DISTANCE = 1 << 31
"""Bytes to the target of a jump that does not wrap around the address space."""

Kind = Literal["other", "call", "return", "jump"]


class Instruction(NamedTuple):
    """One instruction, without its address. Registers have capstone's names."""

    size: int
    """In bytes."""
    kind: Kind
    conditional: bool
    """Whether the code may continue after it, of a call, a return or a jump."""
    distance: int | None
    """Bytes from the instruction to the target of a jump, None if it is unknown."""
    reads: tuple[str, ...]
    """The registers on which its results may depend; none for one that only saves them."""
    uses: tuple[str, ...]
    """Those whose content it certainly uses: in addresses, and as sources."""
    writes: tuple[str, ...]
    uses_stack_argument: bool
    """Whether an operand is in the arguments of an i386 function, with the usual frames."""


class Decoder:
    """Decodes single instructions; `decoder` is capstone's."""

    def __init__(self, decoder: Any, *, is_arm: bool) -> None:
        self._decoder = decoder
        self._is_arm = is_arm
        self._known: dict[bytes, Instruction] = {}
        """By content. Not of Arm, where conditions depend on the instructions before."""
        self._sizes: list[int] = []

    def at(self, content: bytes, offset: int, end: int) -> Instruction | None:
        """Return the instruction at an offset of code that ends at `end`, None if capstone does not know it."""
        for size in self._sizes:
            known = self._known.get(content[offset : offset + size])
            if known is not None and offset + size <= end:
                return known
        self._decoder.detail, self._decoder.skipdata = True, False
        decoded = next(self._decoder.disasm(content[offset : min(offset + _MAX_SIZE, end)], offset, 1), None)
        if decoded is None:
            return None
        instruction = self._described(decoded)
        if not self._is_arm and abs(instruction.distance or 0) < _MAX_DISTANCE:
            self._known[bytes(decoded.bytes)] = instruction
            if decoded.size not in self._sizes:
                self._sizes.append(decoded.size)
        return instruction

    def _described(self, decoded: Any) -> Instruction:
        """Return the description of an instruction from capstone."""
        word = _word(decoded)
        reads, writes = ([decoded.reg_name(n) for n in numbers] for numbers in decoded.regs_access())
        if self._is_arm and word.startswith(_ARM_LOADS):  # capstone leaves out the list
            writes += _registers(decoded)
        uses: list[str] = []
        on_stack = False
        if _saves(decoded, word) or self._is_constant(decoded, word):
            reads = []
        else:
            uses = list(self._used(decoded, word))
            on_stack = any(_is_stack_argument(decoded, operand) for operand in decoded.operands)
        kind, conditional = self._kind(decoded, word)
        return Instruction(
            decoded.size,
            kind,
            conditional,
            _distance(decoded) if kind == "jump" else None,
            tuple(reads),
            tuple(uses),
            tuple(writes),
            on_stack,
        )

    def _kind(self, decoded: Any, word: str) -> tuple[Kind, bool]:
        """Return the kind of an instruction, and whether it is conditional."""
        import capstone

        conditional = decoded.cc not in (0, capstone.arm.ARM_CC_AL) if self._is_arm else False
        if decoded.group(capstone.CS_GRP_CALL) or word in ("bl", "blx"):
            return "call", conditional
        if self._is_arm and (word.startswith("bx") or (word not in ("cmp", "tst") and "pc" in _registers(decoded))):
            return "return", conditional
        if decoded.group(capstone.CS_GRP_RET):
            return "return", False
        if decoded.group(capstone.CS_GRP_JUMP) or word in ("b", "cbz", "cbnz"):
            return "jump", word not in ("jmp", "b") or conditional
        return "other", False

    def _is_constant(self, decoded: Any, word: str) -> bool:
        """Whether the result does not depend on the registers: `xor eax, eax`, `or eax, -1`, `lea esi, [esi]`."""
        import capstone

        operands = decoded.operands
        if word == "lea" and len(operands) == 2:
            return bool(operands[0].reg == operands[1].mem.base and operands[1].mem.disp == 0)
        if len(operands) < 2 or self._is_arm:
            return False
        first, last = operands[0], operands[-1]
        if last.type == capstone.CS_OP_IMM:
            return (word, last.imm & 0xFF) in (("or", 0xFF), ("and", 0))
        same = first.type == last.type == capstone.CS_OP_REG and first.reg == last.reg
        return bool(same and word not in ("mov", "test", "and", "or"))

    def _used(self, decoded: Any, word: str) -> Iterator[str]:
        """Yield the registers whose content an instruction certainly uses: in addresses, and as sources."""
        import capstone

        name: Callable[[int], str] = decoded.reg_name
        sources, every = (_ARM_SOURCES, _ARM_READS) if self._is_arm else (_X86_SOURCES, _X86_READS)
        for index, operand in enumerate(decoded.operands):
            if operand.type == capstone.CS_OP_MEM:
                yield from (name(n) for n in (operand.mem.base, operand.mem.index) if n)
            elif operand.type == capstone.CS_OP_REG:
                base = self._is_arm and word.startswith(_ARM_MULTIPLE) and index == 0
                # `vmov r2, r3, d0` has two destinations.
                source = word in sources and index > 0 and operand.access != capstone.CS_AC_WRITE
                if base or word in every or source:
                    yield name(operand.reg)


def _word(decoded: Any) -> str:
    """Return a mnemonic without prefix, width and type: `rep movsd`, `add.w`, `vmul.f32`."""
    word: str = decoded.mnemonic.rsplit(" ", 1)[-1].split(".", 1)[0]
    return word


def _saves(decoded: Any, word: str) -> bool:
    """Whether an instruction only saves registers, or does nothing."""
    return word in _SAVES or (word.startswith(("stm", "vstm")) and "sp" in _registers(decoded))


def _registers(decoded: Any) -> list[str]:
    """Return the registers among the operands of an instruction."""
    import capstone

    return [decoded.reg_name(o.reg) for o in decoded.operands if o.type == capstone.CS_OP_REG]


def _distance(decoded: Any) -> int | None:
    """Return the bytes from a jump to its target."""
    import capstone

    target: int | None = next((o.imm for o in decoded.operands if o.type == capstone.CS_OP_IMM), None)
    return None if target is None else target - int(decoded.address)


def _is_stack_argument(decoded: Any, operand: Any) -> bool:
    import capstone

    if operand.type != capstone.CS_OP_MEM or not operand.mem.base:
        return False
    base: str = decoded.reg_name(operand.mem.base)
    at: int = operand.mem.disp
    return (base == "ebp" and at >= 8) or (base == "esp" and at >= 4)
