# SPDX-License-Identifier: Apache-2.0
"""Identify files that are neither ELF objects, archives nor sources, for error messages."""

from __future__ import annotations

import struct

from opwest.objects.facts import ObjectError

ELF = b"\x7fELF"
ARCHIVE = b"!<arch>\n"
THIN_ARCHIVE = b"!<thin>\n"
EXPECTED = "an ELF object (.o), an archive (.a), a source in C (.c) or C++ (.cc, .cpp, .cxx), or LLVM IR (.ll, .bc)"

_CROSS = "compile for an ELF target, for example with a cross compiler"
_UNPACK = "unpack it and list the objects in it"
_BITCODE = "compile with -fno-lto; for LLVM IR, use the suffix .bc"
_CONSTANT = "constants are declared under `constants`, not under `objects`"
_BINARY = (
    (b"BC\xc0\xde", "LLVM bitcode (output of -flto)", _BITCODE),
    (b"\xde\xc0\x17\x0b", "LLVM bitcode (output of -flto)", _BITCODE),
    (b"\xfe\xed\xfa\xce", "a Mach-O object (macOS)", _CROSS),
    (b"\xfe\xed\xfa\xcf", "a Mach-O object (macOS)", _CROSS),
    (b"\xce\xfa\xed\xfe", "a Mach-O object (macOS)", _CROSS),
    (b"\xcf\xfa\xed\xfe", "a Mach-O object (macOS)", _CROSS),
    (b"\xca\xfe\xba\xbe", "a Mach-O universal file or a Java class", _CROSS),
    (b"MZ\x90\0", "a Windows program or library", _CROSS),
    (b"\0asm", "a WebAssembly module", _CROSS),
    (b"\x1f\x8b", "a gzip file", _UNPACK),
    (b"PK\x03\x04", "a zip file", _UNPACK),
    (b"\xfd7zXZ\0", "an xz file", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"\x93NUMPY", "a NumPy array", _CONSTANT),
    (b"\xff\xfe", "text in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "save it as UTF-8"),
)
_IR_LINES = (b"; ModuleID", b"source_filename", b"target triple", b"target datalayout", b"define ")
_ASSEMBLY_LINES = (b".text", b".file", b".syntax", b".section", b".globl")
_SCRIPT_LINES = (b"INPUT(", b"GROUP(", b"INPUT (", b"GROUP (", b"OUTPUT_FORMAT")
_COFF_MACHINES = (0x014C, 0x8664, 0x01C0, 0x01C4, 0xAA64)


def _is_coff(content: bytes) -> bool:
    """Whether the content is likely a COFF object: the format has no magic number, so check the fields."""
    if len(content) < 20:
        return False
    machine, sections, _date, table, symbols, optional, _flags = struct.unpack_from("<HHIIIHH", content)
    if machine == 0 and sections == 0xFFFF:  # an import object, or one with many sections (/bigobj)
        return True
    return (
        machine in _COFF_MACHINES
        and optional == 0
        and sections * 40 + 20 <= len(content)
        and table + symbols * 18 <= len(content)
    )


def _text_kind(text: bytes) -> tuple[str, str | None]:
    """Return the kind of a text file, and a hint."""
    start = text[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    lines = start.splitlines()
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself", "run `git lfs pull`"
    if start.startswith(b"#!"):
        return "a script", "list the objects that the script builds"
    if start[:64].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "HTML or XML", "check the file: a failed download is often HTML"
    if any(line.startswith(_IR_LINES) for line in lines):
        return "LLVM IR text", "name it .ll"
    if any(line.lstrip().startswith(_ASSEMBLY_LINES) for line in lines):
        return "assembly text", "assemble it: `gcc -c file.s`"
    if any(line.startswith(_SCRIPT_LINES) for line in lines):
        return "a linker script", "list the objects of the script directly"
    return "text", "use the suffix .c for a C source, .cpp for C++, .ll for LLVM IR"


def looks_like(content: bytes) -> tuple[str, str | None]:
    """Return a description of the content of an unsupported file, and a hint."""
    if not content:
        return "empty", "check the build step that writes it"
    if content[4:8] == b"TFL3":
        return "a TFLite model", "opwest import reads it"
    for magic, what, hint in _BINARY:
        if content.startswith(magic):
            return what, hint
    if content.startswith(THIN_ARCHIVE):
        return "a thin archive, which contains only file names", "create a regular archive: `ar rc lib.a *.o`"
    if content.startswith(ARCHIVE):
        return "an archive", "add the objects of the inner archive instead, which `ar x` extracts"
    if any(magic.startswith(content) for magic in (ELF, ARCHIVE, THIN_ARCHIVE)):
        return "a truncated object or archive", "rebuild it or copy it again"
    if _is_coff(content):
        return ("a Windows COFF object", "compile for an ELF target, for example with `clang --target=<triple>`")
    unknown = "data in an unknown format", None
    if b"\0" in content:
        return unknown
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return unknown
    return _text_kind(content)


def is_known_binary(content: bytes) -> bool:
    """Whether the first bytes are those of a known format that is not text."""
    return any(content.startswith(magic) for magic, _what, _hint in _BINARY)


def not_an_object(content: bytes) -> ObjectError:
    """Return the error for a file that cannot be an object."""
    what, hint = looks_like(content)
    return ObjectError(f"not an object: this is {what}" if content else "the file is empty", EXPECTED, hint)
