# SPDX-License-Identifier: Apache-2.0
"""Objects in which many entries refer to the same bytes are refused in a time that their size bounds."""

import struct
import time
from collections.abc import Sequence

import pytest
from opwest.objects.dwarf import signatures
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.relocate import Relocations

SECONDS = 2
PROGBITS, SYMTAB, STRTAB, RELA, REL = 1, 2, 3, 4, 9
ABBREVIATIONS = bytes(
    [
        *(1, 0x11, 1, 0, 0),  # a compilation unit with children
        *(2, 0x2E, 0, 0x03, 0x08, 0x3F, 0x19, 0, 0),  # a subprogram: DW_AT_name as DW_FORM_string, DW_AT_external
        *(3, 0x2E, 0, 0x31, 0x13, 0x3F, 0x19, 0, 0),  # a subprogram: DW_AT_abstract_origin as DW_FORM_ref4
        0,
    ]
)


def elf_of(rows: Sequence[tuple[str, int, bytes, int, int]]) -> bytes:
    """Return an object for x86-64 with the function `op`; rows are (name, type, data, info, entry size).

    Sections with the same data share its bytes in the file. The index of the first row is 4.
    """
    names = bytearray(b"\0")
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, 4)
    fixed = [
        (".text", PROGBITS, bytes(16), 0, 0, 0, 6),
        (".symtab", SYMTAB, symbols, 1, 24, 3, 0),
        (".strtab", STRTAB, b"\0op\0", 0, 0, 0, 0),
    ]
    body, headers, places, written = bytearray(64), bytearray(64), {}, {}
    for name, kind, data, info, size, link, flags in (*fixed, *((*row, 0, 0) for row in rows)):
        if data not in places:
            places[data] = len(body)
            body += data + bytes(-len(data) % 8)
        if name not in written:
            written[name] = len(names)
            names += name.encode() + b"\0"
        headers += struct.pack(
            "<IIQQQQIIQQ", written[name], kind, flags, 0, places[data], len(data), link, info, 8, size
        )
    headers += struct.pack("<IIQQQQIIQQ", 0, STRTAB, 0, 0, len(body), len(names), 0, 0, 1, 0)
    body += names
    count = len(headers) // 64
    header = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, len(body), 0, 64, 0, 0, 64, count, count - 1)
    return b"\x7fELF\2\1\1".ljust(16, b"\0") + header + bytes(body[64:] + headers)


def unit_of(entries: bytes) -> bytes:
    """Return a unit of DWARF 4 with entries at its top level; the first is at offset 12."""
    body = struct.pack("<HIB", 4, 0, 8) + b"\1" + entries + b"\0"
    return struct.pack("<I", len(body)) + body


def debug_object(*infos: bytes) -> bytes:
    debug = [(".debug_info", PROGBITS, info, 0, 0) for info in infos]
    return elf_of([(".debug_abbrev", PROGBITS, ABBREVIATIONS, 0, 0), *debug])


def one_name(size: int, functions: int) -> bytes:
    """Return functions that all have the same abstract origin, whose name has `size` bytes."""
    return unit_of(b"\2" + b"x" * size + b"\0" + (b"\3" + struct.pack("<I", 12)) * functions)


def fault_of(content: bytes) -> str:
    """Return the reason why the signatures of an object are not checked, found quickly."""
    member = read_member("x.o", content)
    started = time.process_time()
    seen = signatures(member)
    assert time.process_time() - started < SECONDS
    assert isinstance(seen, str), seen
    return seen.removeprefix("signature not checked: ")


def test_names_in_entries() -> None:
    seen = signatures(read_member("x.o", debug_object(unit_of(b"\2op\0" + b"\3" + struct.pack("<I", 12)))))
    assert isinstance(seen, dict) and list(seen) == ["op"]


def test_long_names_in_entries() -> None:
    """The name of an entry is limited like those of string tables, and counts as often as it is read."""
    assert (
        fault_of(debug_object(one_name(1 << 20, 100_000)))
        == "unterminated string, or string of more than 16384 bytes, at 13"
    )
    assert (
        fault_of(debug_object(one_name(16_000, 50_000))) == "the debug information requires too many steps for its size"
    )


def test_debug_sections_share_their_steps() -> None:
    """More headers over the same bytes bring no more steps."""
    info = one_name(16_000, 100)
    assert isinstance(signatures(read_member("x.o", debug_object(info))), dict)
    assert fault_of(debug_object(*[info] * 1_000)) == "the debug information requires too many steps for its size"


def test_relocation_sections_that_overlap() -> None:
    """The sections of relocations are disjoint, so that the file bounds the number of entries."""
    entries = struct.pack("<QQq", 0, 1, 0) * 2_000
    rows = [(".data", PROGBITS, bytes(range(8)), 0, 0), (".rela.data", RELA, entries, 4, 24)]
    elf = parse_elf(elf_of(rows))
    assert Relocations(elf).patched(4) == bytes(8)
    started = time.process_time()
    for kind in (RELA, REL):
        many = [(".rela.data", kind, entries, 4, 24)] * 2_000
        with pytest.raises(ObjectError, match=r"the sections of relocations overlap: \d+ bytes in a file of \d+"):
            Relocations(parse_elf(elf_of([*rows, *many]))).patched(4)
    assert time.process_time() - started < SECONDS
