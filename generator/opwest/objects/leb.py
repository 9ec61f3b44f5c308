# SPDX-License-Identifier: Apache-2.0
"""Numbers and strings in debug and unwind data, each read within its bytes (LEB128: DWARF 5, section 7.6)."""

from __future__ import annotations

from opwest.objects.elf import LONGEST_NAME, damaged

_LONGEST = 10  # bytes of a LEB128 number of 64 bits


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned LEB128 number at `at`, and its end offset."""
    value = shift = 0
    for place in range(at, min(at + _LONGEST, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise damaged(f"unterminated LEB128 number at {at}")


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """Return the signed LEB128 number at `at`, and its end offset."""
    value, end = uleb(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), end


def fixed(data: bytes, at: int, size: int, order: str) -> int:
    """Return the unsigned number of `size` bytes at `at`; `order` is that of `struct`."""
    if at < 0 or at + size > len(data):
        raise damaged(f"number at {at} outside of {len(data)} bytes of data")
    return int.from_bytes(data[at : at + size], "little" if order == "<" else "big")


def string_end(data: bytes, at: int) -> int:
    """Return the offset of the null byte that ends the string at `at`, which has at most `LONGEST_NAME` bytes."""
    end = data.find(b"\0", at, at + LONGEST_NAME + 1) if at >= 0 else -1
    if end < 0:
        raise damaged(f"unterminated string, or string of more than {LONGEST_NAME} bytes, at {at}")
    return end
