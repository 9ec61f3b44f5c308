# SPDX-License-Identifier: Apache-2.0
"""Remove sections that compilers write and that are harmful in firmware.

- Unwind tables of Arm (SHT_ARM_EXIDX): with `nounwind`, LLVM writes an entry of eight bytes per function,
  EXIDX_CANTUNWIND, which Zephyr's linker scripts would put into the firmware. Other entries refer to a personality
  routine, and with it to the unwinder of libgcc (4 KiB, in a section unknown to Zephyr's linker scripts).
- `.note.GNU-stack` in objects for bare metal: GCC writes none there, and GNU ld warns about the
  difference, which Zephyr's `--fatal-warnings` makes an error.

Their headers become unused ones (all zero, SHT_NULL), so that the numbers of other sections do not change; GNU
ld 2.40 fails on empty SHT_ARM_EXIDX sections. Source: System V ABI, "Section Header Table".
"""

from __future__ import annotations

import struct

from opwest.objects.elf import SHT_SYMTAB
from opwest.objects.providers import UNWIND_PREFIX

_SHT_RELA, _SHT_REL, _SHT_GROUP, _SHT_ARM_EXIDX = 4, 9, 17, 0x70000001
_ELF_64, _LITTLE = 2, 1
_STACK_NOTE, _EXTAB = b".note.GNU-stack", b".ARM.extab"
_EXTENDED = 0xFFFF
_NAME, _TYPE, _OFFSET, _SIZE, _LINK, _INFO = 0, 1, 4, 5, 6, 7


def without_sections(content: bytes, *, unwind_tables: bool, stack_note: bool) -> bytes:
    """Return a valid ELF object without the named sections and their relocations.

    Without unwind tables, undefined personality routines become weak: a linker does not extract them from libgcc.
    """
    wide = content[4] == _ELF_64
    order = "<" if content[5] == _LITTLE else ">"
    header = struct.Struct(order + ("2I4Q2I2Q" if wide else "10I"))
    start = struct.unpack_from(order + ("Q" if wide else "I"), content, 0x28 if wide else 0x20)[0]
    if not start:
        return content
    count, names = struct.unpack_from(order + "2H", content, 0x3C if wide else 0x30)
    first = header.unpack_from(content, start)
    # More than 65,279 sections: the first header has the numbers.
    count = count or first[_SIZE]
    names = first[_LINK] if names == _EXTENDED else names
    headers = [header.unpack_from(content, start + i * header.size) for i in range(count)]

    def is_removed(section: tuple[int, ...]) -> bool:
        name = headers[names][_OFFSET] + section[_NAME]
        if section[_TYPE] == _SHT_ARM_EXIDX or content.startswith(_EXTAB, name):
            return unwind_tables
        return stack_note and content.startswith(_STACK_NOTE + b"\0", name)

    dropped = {i for i, section in enumerate(headers) if is_removed(section)}
    relocations = (_SHT_REL, _SHT_RELA)
    dropped |= {i for i, section in enumerate(headers) if section[_TYPE] in relocations and section[_INFO] in dropped}
    data = bytearray(content)
    for index, section in enumerate(headers):
        at = start + index * header.size
        if index in dropped:
            header.pack_into(data, at, *[0] * 10)
        elif section[_TYPE] == SHT_SYMTAB and unwind_tables and section[_LINK] < count:
            _weaken(data, order, wide, section, headers[section[_LINK]])
        elif section[_TYPE] == _SHT_GROUP and section[_SIZE] >= 4:
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


def _weaken(data: bytearray, order: str, wide: bool, table: tuple[int, ...], names: tuple[int, ...]) -> None:
    """Make undefined personality routines weak."""
    size, info_at, index_at = (24, 4, 6) if wide else (16, 12, 14)
    for at in range(table[_OFFSET], table[_OFFSET] + table[_SIZE] // size * size, size):
        (index,) = struct.unpack_from(f"{order}H", data, at + index_at)
        (name,) = struct.unpack_from(f"{order}I", data, at)
        if index == 0 and data.startswith(UNWIND_PREFIX.encode(), names[_OFFSET] + name):
            data[at + info_at] = 2 << 4 | data[at + info_at] & 15
