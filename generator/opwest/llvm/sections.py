# SPDX-License-Identifier: Apache-2.0
"""Remove sections that LLVM always writes and that are harmful in firmware.

- Unwind tables of Arm (SHT_ARM_EXIDX): with `nounwind` they contain an entry of eight bytes per function,
  EXIDX_CANTUNWIND, which Zephyr's linker scripts would put into the firmware.
- `.note.GNU-stack` in objects for bare metal: GCC writes none there, and GNU ld warns about the
  difference, which Zephyr's `--fatal-warnings` makes an error.

Their headers become unused ones (all zero, SHT_NULL), so that the numbers of other sections do not change; GNU
ld 2.40 fails on empty SHT_ARM_EXIDX sections. Source: System V ABI, "Section Header Table".
"""

from __future__ import annotations

import struct

from opwest.llvm.facts import LlvmError

_SHT_RELA, _SHT_REL, _SHT_GROUP, _SHT_ARM_EXIDX = 4, 9, 17, 0x70000001
_ELF_64, _LITTLE = 2, 1
_STACK_NOTE = b".note.GNU-stack"
_EXTENDED = 0xFFFF
_NAME, _TYPE, _OFFSET, _SIZE, _LINK, _INFO = 0, 1, 4, 5, 6, 7


def without_sections(content: bytes, *, unwind_tables: bool, stack_note: bool) -> bytes:
    """Return an ELF object without the named sections and their relocations."""
    if not content.startswith(b"\x7fELF"):
        raise LlvmError("the output of LLVM is not ELF", "the triple of a target with ELF objects")
    wide = content[4] == _ELF_64
    order = "<" if content[5] == _LITTLE else ">"
    header = struct.Struct(order + ("2I4Q2I2Q" if wide else "10I"))
    start = struct.unpack_from(order + ("Q" if wide else "I"), content, 0x28 if wide else 0x20)[0]
    count, names = struct.unpack_from(order + "2H", content, 0x3C if wide else 0x30)
    first = header.unpack_from(content, start)
    # More than 65,279 sections: the first header has the numbers.
    count = count or first[_SIZE]
    names = first[_LINK] if names == _EXTENDED else names
    headers = [header.unpack_from(content, start + i * header.size) for i in range(count)]

    def is_removed(section: tuple[int, ...]) -> bool:
        if section[_TYPE] == _SHT_ARM_EXIDX:
            return unwind_tables
        name = headers[names][_OFFSET] + section[_NAME]
        return stack_note and content.startswith(_STACK_NOTE + b"\0", name)

    dropped = {i for i, section in enumerate(headers) if is_removed(section)}
    relocations = (_SHT_REL, _SHT_RELA)
    dropped |= {i for i, section in enumerate(headers) if section[_TYPE] in relocations and section[_INFO] in dropped}
    data = bytearray(content)
    for index, section in enumerate(headers):
        at = start + index * header.size
        if index in dropped:
            header.pack_into(data, at, *[0] * 10)
        elif section[_TYPE] == _SHT_GROUP:
            fields = list(section)
            fields[_SIZE] = _without_members(data, order, section[_OFFSET], section[_SIZE], dropped)
            header.pack_into(data, at, *fields)
    return bytes(data)


def _without_members(data: bytearray, order: str, offset: int, size: int, dropped: set[int]) -> int:
    """Remove sections from a group (a word of flags, then the number of each); return its new size."""
    flags, *members = struct.unpack_from(f"{order}{size // 4}I", data, offset)
    kept = [m for m in members if m not in dropped]
    struct.pack_into(f"{order}{len(kept) + 1}I", data, offset, flags, *kept)
    return 4 * (len(kept) + 1)
