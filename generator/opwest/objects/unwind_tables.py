# SPDX-License-Identifier: Apache-2.0
"""Frame sizes from call frame information (`.debug_frame`, `.eh_frame`) and index tables of Arm (`.ARM.exidx`).

A row of the table defines the start of the frame (the canonical frame address, CFA) as a register plus
an offset. If the register is the stack pointer, the offset is the size of the frame at that location;
if it is a frame pointer, the offset is a lower bound.

Only offsets are used, so location advances need no relocation (RISC-V sets them by `R_RISCV_SET6`,
which does not change the opcode). Sources: DWARF 5, section 6.4; LSB 5, "Exception
Frames", for `.eh_frame`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.dwarf_units import fixed, initial_length, sleb, string_end, uleb
from opwest.objects.elf import Layout, damaged
from opwest.objects.facts import ObjectError
from opwest.objects.relocations import Relocations

STACK_POINTERS = {"x86-64": 7, "i386": 4, "arm": 13, "aarch64": 31, "riscv": 2}
_MAX_FRAME_BYTES = 1 << 31
_MAX_DEPTH = 64
_MAX_CIE_LENGTH = 4096
_POINTER_SIZES = {0x02: 2, 0x03: 4, 0x04: 8, 0x0A: 2, 0x0B: 4, 0x0C: 8}


class Frame(NamedTuple):
    """The frame of the code that starts at `offset` of `section`."""

    section: int
    offset: int
    bytes: int
    exact: bool


@dataclass(slots=True)
class _Rows:
    """The state of the instruction interpreter: the CFA rule and the maximum so far."""

    register: int = -1
    offset: int | None = 0  # the initial value of GNU as on RISC-V, where the CIE defines only the register
    largest: int = 0
    exact: bool = True

    def row(self, stack_pointer: int) -> None:
        """Count the row that ends here."""
        if self.offset is not None and 0 <= self.offset < _MAX_FRAME_BYTES:
            self.largest = max(self.largest, self.offset)
        if self.register != stack_pointer or self.offset is None:
            self.exact = False


@dataclass(slots=True)
class _Cie:
    """A common information entry, shared by the FDEs of several functions."""

    data_align: int
    pointer: int
    segment: int
    augmented: bool
    start: _Rows


def cfi_frames(
    data: bytes, targets: dict[int, tuple[int, int]], layout: Layout, machine: str, *, eh: bool
) -> Iterator[Frame]:
    """Yield the frames that a section describes.

    `data` has its relocations applied, `targets` maps the offset of a field to its target. FDEs without a
    relocation or with an unknown encoding are skipped; a truncated FDE ends the section.
    """
    stack_pointer = STACK_POINTERS.get(machine, -1)
    cies: dict[int, _Cie | None] = {}
    at = 0
    while at + 4 <= len(data):
        entry, order = at, layout.order
        length, at, offset_size = initial_length(data, at, order)
        if length == 0:
            if eh:
                return
            continue
        end = at + length
        if end > len(data):
            return
        size = 4 if eh else offset_size
        identifier = fixed(data, at, size, order)
        body = at + size
        if identifier == (0 if eh else (1 << 8 * size) - 1):
            cies[entry] = _read_cie(data[body:end], layout, stack_pointer, eh=eh)
        else:
            cie = _cie(data, at - identifier if eh else identifier, cies, layout, stack_pointer, eh=eh)
            target = targets.get(body + cie.segment) if cie else None
            frame = _read_fde(data[body:end], cie, target, stack_pointer) if cie and target else None
            if frame:
                yield frame
        at = end


def _cie(
    data: bytes, at: int, cies: dict[int, _Cie | None], layout: Layout, stack_pointer: int, *, eh: bool
) -> _Cie | None:
    """Return the CIE at `at`, which may follow the FDEs that use it."""
    if at not in cies:
        cies[at] = None
        if at >= 0 and at + 12 <= len(data):
            length, body, offset_size = initial_length(data, at, layout.order)
            size = 4 if eh else offset_size
            end = body + length
            marker = 0 if eh else (1 << 8 * size) - 1
            if end <= len(data) and length <= _MAX_CIE_LENGTH and fixed(data, body, size, layout.order) == marker:
                cies[at] = _read_cie(data[body + size : end], layout, stack_pointer, eh=eh)
    return cies[at]


def _read_cie(data: bytes, layout: Layout, stack_pointer: int, *, eh: bool) -> _Cie | None:
    """Return a CIE; None where its version or augmentation is not known."""
    try:
        version = fixed(data, 0, 1, layout.order)
        end = string_end(data, 1)
        augmentation, at = data[1:end], end + 1
        pointer, segment = layout.bits // 8, 0
        if version == 4:
            pointer, segment = fixed(data, at, 1, layout.order), fixed(data, at + 1, 1, layout.order)
            at += 2
        if version not in (1, 3, 4) or pointer not in (4, 8):
            return None
        _code_align, at = uleb(data, at)
        data_align, at = sleb(data, at)
        at = at + 1 if version == 1 else uleb(data, at)[1]
        augmented = augmentation[:1] == b"z"
        if augmented:
            length, at = uleb(data, at)
            if eh:
                pointer = _encoding(data[at : at + length], augmentation[1:], pointer)
            at += length
        elif augmentation:
            return None
        if not pointer:
            return None
        cie = _Cie(data_align, pointer, segment, augmented, _Rows())
        _run(data, at, cie, cie.start, stack_pointer)
        cie.start.largest, cie.start.exact = 0, True
    except ObjectError:
        return None
    return cie


def _encoding(data: bytes, letters: bytes, address: int) -> int:
    """Return the size of pointers in FDEs of `.eh_frame`; 0 where it is not fixed or not known."""
    at = 0
    for letter in letters.decode("latin-1"):
        if letter == "R":
            return _pointer_size(data[at], address) if at < len(data) else 0
        if letter == "L":
            at += 1
        elif letter == "P":
            size = _pointer_size(data[at], address) if at < len(data) else 0
            if not size:
                return 0
            at += 1 + size
        elif letter not in "SBG":
            return 0
    return address


def _pointer_size(encoding: int, address: int) -> int:
    return address if encoding & 0x0F in (0x00, 0x08) else _POINTER_SIZES.get(encoding & 0x0F, 0)


def _read_fde(data: bytes, cie: _Cie, target: tuple[int, int], stack_pointer: int) -> Frame | None:
    """Return the frame that an FDE describes, of the code at `target`."""
    if target[0] <= 0:
        return None
    rows = _Rows(cie.start.register, cie.start.offset)
    try:
        at = cie.segment + 2 * cie.pointer
        if cie.augmented:
            length, at = uleb(data, at)
            at += length
        _run(data, at, cie, rows, stack_pointer)
    except ObjectError:
        return None
    rows.row(stack_pointer)
    return Frame(*target, rows.largest, rows.exact) if rows.exact or rows.largest else None


def _run(data: bytes, at: int, cie: _Cie, rows: _Rows, stack_pointer: int) -> None:
    """Run instructions to the end of `data` (DWARF 5, table 7.29)."""
    remembered: list[tuple[int, int | None]] = []
    initial = cie.start.register, cie.start.offset
    while at < len(data):
        code = data[at]
        at += 1
        if code & 0xC0 == 0x40:  # advance_loc
            rows.row(stack_pointer)
        elif code & 0xC0 == 0x80:  # offset
            _, at = uleb(data, at)
        elif code & 0xC0 == 0xC0 or code in (0x00, 0x2C, 0x2D):  # restore, nop, negate_ra_state
            pass
        elif code in (0x02, 0x03, 0x04, 0x1D, 0x01):  # advance_loc1, 2, 4, 8, set_loc
            rows.row(stack_pointer)
            at += {0x02: 1, 0x03: 2, 0x04: 4, 0x1D: 8}.get(code, cie.pointer)
        elif code in (0x06, 0x07, 0x08, 0x2E):  # restore_extended, undefined, same_value, args_size
            _, at = uleb(data, at)
        elif code in (0x05, 0x09, 0x11, 0x14, 0x15, 0x2F):  # rules of registers with two numbers
            at = uleb(data, uleb(data, at)[1])[1]
        elif code in (0x0F, 0x10, 0x16):  # def_cfa_expression, expression, val_expression
            if code == 0x0F:
                rows.offset = None
            else:
                _, at = uleb(data, at)
            length, at = uleb(data, at)
            at += length
        elif code == 0x0A:
            remembered.append((rows.register, rows.offset))
            if len(remembered) > _MAX_DEPTH:
                raise damaged("too many remembered states in call frame information")
        elif code == 0x0B:
            rows.register, rows.offset = remembered.pop() if remembered else initial
        elif code in (0x0C, 0x0D, 0x0E, 0x12, 0x13):
            at = _define(data, at, code, cie, rows)
        else:
            raise damaged(f"unknown instruction 0x{code:02x} in call frame information")
    if at > len(data):
        raise damaged("truncated call frame information")


def _define(data: bytes, at: int, code: int, cie: _Cie, rows: _Rows) -> int:
    """Run an instruction that defines the CFA; return where it ends."""
    if code in (0x0C, 0x0D, 0x12):
        rows.register, at = uleb(data, at)
    if code in (0x0C, 0x0E):
        rows.offset, at = uleb(data, at)
    elif code in (0x12, 0x13):
        factored, at = sleb(data, at)
        rows.offset = factored * cie.data_align
    return at


_CANTUNWIND = 1
_COMPACT = 0x80000000


def exidx_frames(relocations: Relocations, index: int) -> Iterator[Frame]:
    """Yield the frames of an index table, without the entries that cannot be unwound."""
    elf = relocations.elf
    data, order = elf.data(elf.sections[index]), elf.layout.order
    targets = relocations.targets(index)
    tables: dict[int, tuple[bytes, dict[int, tuple[int, int]]]] = {}
    for at in range(0, len(data) - 7, 8):
        function = targets.get(at)
        if function is None or function[0] <= 0:
            continue
        try:
            table = targets.get(at + 4)
            if table is None:
                word = fixed(data, at + 4, 4, order)
                if word == _CANTUNWIND or word >> 24 != 0x80:
                    continue
                codes = word.to_bytes(4, "big")[1:]
            elif table[0] > 0:
                if table[0] not in tables:
                    section = elf.sections[table[0]]
                    tables[table[0]] = elf.data(section), relocations.targets(table[0])
                codes = _table_codes(*tables[table[0]], table[1], order)
            else:
                continue
            size, exact = frame_size(codes)
        except ObjectError:
            continue
        if size or exact:
            yield Frame(function[0], function[1] & ~1, size, exact)


def _table_codes(data: bytes, targets: dict[int, tuple[int, int]], at: int, order: str) -> bytes:
    """Return the instructions of an entry of `.ARM.extab`."""
    word = fixed(data, at, 4, order)
    if at not in targets and word & _COMPACT:
        index = word >> 24 & 0x0F
        if index == 0:
            return word.to_bytes(4, "big")[1:]
        if index not in (1, 2):
            raise damaged(f"an unwind table names the reserved personality routine {index}")
        more, start = word >> 16 & 0xFF, word.to_bytes(4, "big")[2:]
    else:
        # The generic model: GNU and LLVM personality routines use the format of the compact model.
        at += 4
        word = fixed(data, at, 4, order)
        more, start = word >> 24, word.to_bytes(4, "big")[1:]
    words = [fixed(data, at + 4 * n, 4, order) for n in range(1, more + 1)]
    return start + b"".join(w.to_bytes(4, "big") for w in words)


def frame_size(codes: bytes) -> tuple[int, bool]:
    """Return the bytes that the instructions pop, and whether they are the whole frame."""
    size, exact, at = 0, True, 0
    while at < len(codes):
        code = codes[at]
        following = codes[at + 1] if at + 1 < len(codes) else 0
        at += 1
        if code == 0xB0:  # finish
            break
        if code < 0x40:
            size += ((code & 0x3F) << 2) + 4
        elif code < 0x80:
            size -= ((code & 0x3F) << 2) + 4
        elif code < 0x90:
            mask = (code & 0x0F) << 8 | following
            at += 1
            if not mask:
                raise damaged("the unwind table has a 'refuse to unwind' instruction")
            size += 4 * mask.bit_count()
            exact = exact and not mask & 0x200  # a popped stack pointer: the rest is relative to an unknown address
        elif code < 0xA0:
            exact = False  # vsp = r[n]
        elif code < 0xB0:
            size += 4 * ((code & 7) + 1 + (code >> 3 & 1))
        elif code == 0xB2:
            number, at = uleb(codes, at)
            size += 0x204 + (number << 2)
        elif code in (0xB1, 0xC7):
            mask, at = following, at + 1
            if not 0 < mask < 16:
                raise damaged(f"an unwind table has the reserved instruction 0x{code:02x} 0x{mask:02x}")
            size += 4 * mask.bit_count()
        elif code == 0xB4:  # return address authentication code
            size += 4
        elif code == 0xB5:  # modifier of the authentication
            pass
        elif code in (0xB3, 0xC6, 0xC8, 0xC9):
            size += 8 * ((following & 0x0F) + 1) + (4 if code == 0xB3 else 0)
            at += 1
        elif 0xB8 <= code <= 0xBF:
            size += 8 * ((code & 7) + 1) + 4
        elif 0xC0 <= code <= 0xC5 or 0xD0 <= code <= 0xD7:
            size += 8 * ((code & 7) + 1)
        else:
            raise damaged(f"an unwind table has the spare instruction 0x{code:02x}")
    if at > len(codes) or not 0 <= size < _MAX_FRAME_BYTES:
        raise damaged("invalid unwind table")
    return size, exact
