# SPDX-License-Identifier: Apache-2.0
"""A small ELF writer for classes and byte orders that no installed compiler supports."""

import struct
from collections.abc import Sequence


def build_elf(
    *,
    bits: int = 64,
    endian: str = "little",
    machine: int = 62,
    kind: int = 1,
    flags: int = 0,
    symbols: Sequence[tuple[str, int, int, int]] = (("op", 1, 2, 1), ("memcpy", 1, 0, 0)),
    sections: Sequence[tuple[str, int, int, bytes]] = ((".text", 1, 6, b"\x90" * 16),),
    shared_strings: bool = False,
    symbol_table: bool = True,
) -> bytes:
    """Return an ELF file; symbols are (name, binding, type, section), sections (name, type, flags, data)."""
    order = "<" if endian == "little" else ">"
    wide = bits == 64
    names = bytearray(b"\0")
    strings = names if shared_strings else bytearray(b"\0")

    def add(table: bytearray, name: str) -> int:
        table += name.encode() + b"\0"
        return len(table) - len(name.encode()) - 1

    packed = bytes(24 if wide else 16)
    for name, binding, type_, section in symbols:
        at, info = add(strings, name), binding << 4 | type_
        if wide:
            packed += struct.pack(order + "IBBHQQ", at, info, 0, section, 0, 4)
        else:
            packed += struct.pack(order + "IIIBBH", at, 0, 4, info, 0, section)
    rows = [(0, 0, 0, b"", 0, 0)]
    rows += [(add(names, name), type_, flags_, data, 0, 0) for name, type_, flags_, data in sections]
    if symbol_table:
        link = len(rows) + 1
        rows.append((add(names, ".symtab"), 2, 0, packed, link, 24 if wide else 16))
        if not shared_strings:
            rows.append((add(names, ".strtab"), 3, 0, bytes(strings), 0, 0))
    at = add(names, ".shstrtab")
    rows.append((at, 3, 0, bytes(names), 0, 0))
    header_size = 64 if wide else 52
    body, headers = bytearray(), b""
    for name, type_, flags_, data, link, entry in rows:
        offset = header_size + len(body)
        size = len(data)
        if type_ == 8:
            size, data = 64, b""
        body += data + bytes(-len(data) % 8)
        layout = "IIQQQQIIQQ" if wide else "10I"
        headers += struct.pack(order + layout, name, type_, flags_, 0, offset, size, link, 1, 8, entry)
    table = header_size + len(body)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if endian == "little" else 2, 1]) + bytes(9)
    layout = "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"
    entry = 64 if wide else 40
    header = struct.pack(
        order + layout, kind, machine, 1, 0, 0, table, flags, header_size, 0, 0, entry, len(rows), len(rows) - 1
    )
    return ident + header + bytes(body) + headers


def attributes() -> bytes:
    """Return the build attributes of a Cortex-M3: CPU name, v7, profile M, Thumb-2, a tag with text."""
    values = b"\x05Cortex-M3\0" + bytes([6, 10, 7, ord("M"), 9, 2, 18, 4, 20, 1]) + b"\x43conformance\0"
    scope = b"\x01" + struct.pack("<I", len(values) + 5) + values
    return b"A" + struct.pack("<I", len(scope) + 10) + b"aeabi\0" + scope


def arm_object() -> bytes:
    sections = (
        (".text", 1, 6, b"\x00" * 8),
        (".data", 1, 3, b"\x00" * 4),
        (".bss", 8, 3, b""),
        (".ARM.attributes", 0x70000003, 0, attributes()),
    )
    symbols = (("$t", 0, 0, 1), ("op", 1, 2, 1), ("state", 0, 1, 2), ("weak", 2, 2, 1), ("memcpy", 1, 0, 0))
    return build_elf(bits=32, machine=40, flags=0x05000000, sections=sections, symbols=symbols)


def archive_of(*contents: bytes) -> bytes:
    result = b"!<arch>\n"
    names = b"a_rather_long_member_name.o/\n"
    result += f"{'//':<16}{'':<12}{'':<6}{'':<6}{'':<8}{len(names):<10}`\n".encode() + names + b"\n"[: len(names) % 2]
    for name, content in zip(("/0", "two.o/", "#1/8"), contents, strict=False):
        body = b"three.o\0" + content if name == "#1/8" else content
        result += f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(body):<10}`\n".encode() + body
        result += b"\n"[: len(body) % 2]
    return result
