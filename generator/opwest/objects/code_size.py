# SPDX-License-Identifier: Apache-2.0
"""The bytes that an object puts into read-only memory."""

from __future__ import annotations

from opwest.objects.elf import SHF_ALLOC, SHF_WRITE, SHT_NOBITS, parse_elf


def code_size(content: bytes) -> int:
    """Return the bytes of code and constants, as the column `text` of size(1). Raises ObjectError."""
    sections = parse_elf(content).sections
    return sum(
        one.size for one in sections if one.flags & SHF_ALLOC and not one.flags & SHF_WRITE and one.kind != SHT_NOBITS
    )
