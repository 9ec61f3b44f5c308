# SPDX-License-Identifier: Apache-2.0
"""Frame sizes from the unwind tables of Arm (`.ARM.exidx`, `.ARM.extab`).

The instructions undo a prologue: they add to the virtual stack pointer (vsp) and pop registers, and
their sum is the frame size. If one sets vsp from a frame pointer, the sum is a lower bound. Sources:
Exception Handling ABI for the Arm Architecture (EHABI32), sections 6
(index table), 7 (the compact model), 10.2 (personality routines 0 to 2) and 10.3 (frame unwinding
instructions).
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.objects.cfi import Frame
from opwest.objects.elf import damaged
from opwest.objects.facts import ObjectError
from opwest.objects.leb import fixed, uleb
from opwest.objects.relocate import Relocations

SHT_ARM_EXIDX = 0x70000001
_CANTUNWIND = 1
_COMPACT = 0x80000000
_LARGEST = 1 << 31


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
        elif code == 0xB1 or code == 0xC7:
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
    if at > len(codes) or not 0 <= size < _LARGEST:
        raise damaged("invalid unwind table")
    return size, exact
