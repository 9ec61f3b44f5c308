# SPDX-License-Identifier: Apache-2.0
"""Damaged files end in ObjectError or in a value, quickly; never in another exception."""

import struct
import time

import pytest
from elf_writer import archive_of, arm_object, build_elf
from objects_factory import compile_object
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.relocations import Relocations
from opwest.objects.report import as_json, as_text
from opwest.objects.rewriting import rename_symbols


def survive(path, content):
    """Read hostile content with every reader."""
    path.write_bytes(content)
    try:
        item = inspect_object(path)
    except ObjectError as fault:
        assert fault.message
        return
    as_text("x", item)
    as_json("x", item)


def survive_rename(content):
    try:
        renamed = rename_symbols(content, {"op": "model__op", "memcpy": "model__memcpy"})
        read_member("x.o", renamed)
    except ObjectError as fault:
        assert fault.message


@pytest.fixture(params=["arm", "wide", "archive"])
def content(request):
    return {"arm": arm_object(), "wide": build_elf(), "archive": archive_of(arm_object(), build_elf(), build_elf())}[
        request.param
    ]


def test_undamaged_files_are_readable(tmp_path):
    one = read_member("x.o", arm_object())
    assert one.abi.arch == "v7-M" and one.abi.float_abi == "soft" and not one.faults
    (tmp_path / "x.a").write_bytes(archive_of(arm_object(), build_elf(), build_elf()))
    item = inspect_object(tmp_path / "x.a")
    assert [m.name for m in item.members] == ["a_rather_long_member_name.o", "two.o", "three.o"]


def test_truncated_at_every_byte(tmp_path, content):
    started = time.process_time()
    for size in range(len(content)):
        survive(tmp_path / "x.o", content[:size])
        survive_rename(content[:size])
    assert time.process_time() - started < 60


def test_truncated_compiler_output(tmp_path):
    whole = compile_object(tmp_path, "int op(int a) { static int n; return a + n++; }").read_bytes()
    for size in range(len(whole)):
        with pytest.raises(ObjectError, match="truncated"):
            read_member("x.o", whole[:size])


@pytest.mark.parametrize("value", [0xFFFFFFFFFFFFFFFF, 1 << 63, 1 << 40])
def test_huge_numbers_in_the_section_table(value):
    whole = build_elf()
    (table,) = struct.unpack_from("<Q", whole, 40)
    for section in range((len(whole) - table) // 64):
        for field in (8, 24, 32, 56):
            content = bytearray(whole)
            struct.pack_into("<Q", content, table + section * 64 + field, value)
            try:
                read_member("x.o", bytes(content))
            except ObjectError as fault:
                assert fault.message


def test_section_counts_that_do_not_fit():
    content = bytearray(build_elf())
    struct.pack_into("<H", content, 60, 0)  # the count moves to section 0 …
    (table,) = struct.unpack_from("<Q", content, 40)
    struct.pack_into("<Q", content, table + 32, 1 << 60)  # … which promises too many
    with pytest.raises(ObjectError, match="truncated: the section table ends at byte"):
        read_member("x.o", bytes(content))


def test_truncation_names_the_section():
    content = bytearray(build_elf())
    (table,) = struct.unpack_from("<Q", content, 40)
    struct.pack_into("<Q", content, table + 64 + 32, 100_000)
    with pytest.raises(
        ObjectError, match=rf"truncated: section \.text ends at byte 100064, the file has {len(content)}"
    ):
        read_member("x.o", bytes(content))


def test_names_in_one_long_string_take_linear_time():
    symbols = [("x" * 16_000, 1, 2, 1)] * 2 + [("y", 1, 2, 1)]
    content = bytearray(build_elf(symbols=symbols))
    started = time.process_time()
    read_member("x.o", bytes(content))
    assert time.process_time() - started < 2


def test_names_cannot_reach_the_terminal(tmp_path):
    (tmp_path / "x.o").write_bytes(build_elf(symbols=[("\x1b[2Jop", 1, 2, 1)]))
    assert "\x1b" not in as_text("x.o", inspect_object(tmp_path / "x.o"))


# --- Objects in which many entries refer to the same bytes are refused in a time that their size bounds

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


def elf_of(rows):
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


def unit_of(entries):
    """Return a unit of DWARF 4 with entries at its top level; the first is at offset 12."""
    body = struct.pack("<HIB", 4, 0, 8) + b"\1" + entries + b"\0"
    return struct.pack("<I", len(body)) + body


def debug_object(*infos):
    debug = [(".debug_info", PROGBITS, info, 0, 0) for info in infos]
    return elf_of([(".debug_abbrev", PROGBITS, ABBREVIATIONS, 0, 0), *debug])


def one_name(size, functions):
    """Return functions that all have the same abstract origin, whose name has `size` bytes."""
    return unit_of(b"\2" + b"x" * size + b"\0" + (b"\3" + struct.pack("<I", 12)) * functions)


def fault_of(content):
    """Return the reason why the signatures of an object are not checked, found quickly."""
    member = read_member("x.o", content)
    started = time.process_time()
    seen = signatures(member)
    assert time.process_time() - started < SECONDS
    assert isinstance(seen, str), seen
    return seen.removeprefix("signature not checked: ")


def test_names_in_entries():
    seen = signatures(read_member("x.o", debug_object(unit_of(b"\2op\0" + b"\3" + struct.pack("<I", 12)))))
    assert isinstance(seen, dict) and list(seen) == ["op"]


def test_long_names_in_entries():
    """The name of an entry is limited like those of string tables, and counts as often as it is read."""
    assert (
        fault_of(debug_object(one_name(1 << 20, 100_000)))
        == "unterminated string, or string of more than 16384 bytes, at 13"
    )
    assert (
        fault_of(debug_object(one_name(16_000, 50_000))) == "the debug information requires too many steps for its size"
    )


def test_debug_sections_share_their_steps():
    """More headers over the same bytes bring no more steps."""
    info = one_name(16_000, 100)
    assert isinstance(signatures(read_member("x.o", debug_object(info))), dict)
    assert fault_of(debug_object(*[info] * 1_000)) == "the debug information requires too many steps for its size"


def test_relocation_sections_that_overlap():
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
