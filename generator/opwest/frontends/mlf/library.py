# SPDX-License-Identifier: Apache-2.0
"""The files of a model in Model Library Format, from a tar file or its unpacked directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.project.disk import system_faults

MEMBERS = 20_000
MEMBER_BYTES = 64 << 20
KEPT_BYTES = 128 << 20
HEADER_BYTES = 1 << 16
"""The maximum size of a pax header, or of a long name in a tar."""

JSON_BYTES = 16 << 20
TENSORS = 4096
DIMENSIONS = 16
ELEMENTS = 1 << 30


_BLOCK = 512
_FILES = (b"0", b"\0", b"7")
_REFUSED = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"K": "a long link name",
}
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}


@dataclass(frozen=True)
class _Header:
    offset: int
    name: bytes
    size: int
    kind: bytes


class _Reader:
    """A tar file.

    Raises OpwestError for a file that is not a tar, damaged or truncated, for members other than files and directories,
    for names outside the archive's directory, for duplicate names, and for sizes above the limits.
    """

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self.stream = stream
        self.length = stream.seek(0, 2)
        stream.seek(0)
        self.kinds: dict[str, str] = {}
        """The kind of each name: file or directory."""

    def files(self) -> dict[str, bytes]:
        """Return the files that can be part of the model by their names, without `./`."""
        start = self.stream.read(6)
        self.stream.seek(0)
        for magic, name in _COMPRESSED.items():
            if start.startswith(magic):
                raise self._fault(f"the file is compressed with {name}", 0, "an uncompressed tar")
        files: dict[str, bytes] = {}
        kept = 0
        for header, name in self._members():
            if header.kind == b"5":
                continue
            if not _maybe_relevant(name):
                self._content(header.size, is_kept=False)
                continue
            if header.size > MEMBER_BYTES:
                raise self._fault(
                    f"{name!r} has {counted(header.size, 'byte')}", header.offset, f"at most {MEMBER_BYTES}"
                )
            kept += header.size
            if kept > KEPT_BYTES:
                text = "the total size of the model's files is too large"
                raise self._fault(text, header.offset, f"at most {KEPT_BYTES}")
            files[name] = self._content(header.size)
        return files

    def _members(self) -> Iterator[tuple[_Header, str]]:
        """Yield files and directories; the caller reads or skips the content of each file before the next one."""
        long_name: bytes | None = None
        long_size: int | None = None
        count = 0
        while (header := self._header()) is not None:
            if header.kind in (b"x", b"g"):
                records = self._records(self._small(header), header.offset)
                if header.kind == b"x":
                    long_name = records.get(b"path", long_name)
                    if b"size" in records:
                        long_size = self._decimal(records[b"size"], header.offset)
                continue
            if header.kind == b"L":
                long_name = self._small(header).rstrip(b"\0")
                continue
            size = header.size if long_size is None else long_size
            plain = long_name if long_name is not None else header.name
            is_folder = header.kind == b"5" or (header.kind == b"\0" and plain.endswith(b"/"))
            member = _Header(header.offset, plain, 0 if is_folder else size, b"5" if is_folder else header.kind)
            long_name = long_size = None
            count += 1
            if count > MEMBERS:
                raise self._fault("the archive has too many members", header.offset, f"at most {MEMBERS}")
            name = self._name(member)
            self._check_kind(member, name)
            self._check_place(member, name)
            yield member, name
        if count == 0:
            raise self._fault("the archive is empty", 0, "a Model Library Format tar")

    def _header(self) -> _Header | None:
        """Return the next header; None at the archive's end."""
        offset = self.stream.tell()
        block = self.stream.read(_BLOCK)
        if len(block) < _BLOCK:
            what = "truncated archive: missing end mark" if offset else "not a tar: the file is too short"
            raise self._fault(what, offset, "blocks of 512 bytes, the last ones zero")
        if not any(block):
            return None
        if offset == 0 and block[148:156].strip(b" \0").strip(b"01234567"):
            raise self._fault("not a tar: no header at the start", 0, "an uncompressed tar")
        checksum = self._number(block[148:156], offset, "checksum")
        if checksum != sum(block) - sum(block[148:156]) + 8 * 32:
            what = "damaged member: wrong checksum of the header" if offset else "not a tar: no header at the start"
            raise self._fault(what, offset, "an uncompressed tar")
        name = block[:100].split(b"\0")[0]
        if block[257:262] == b"ustar" and block[257:265] != b"ustar  \0":
            prefix = block[345:500].split(b"\0")[0]
            name = prefix + b"/" + name if prefix else name
        return _Header(offset, name, self._number(block[124:136], offset, "size"), block[156:157])

    def _number(self, text: bytes, offset: int, what: str) -> int:
        """Return an octal number, or a number in GNU's base-256 encoding."""
        if text[0] == 0x80:
            return int.from_bytes(text[1:], "big")
        digits = text.split(b"\0")[0].strip(b" ")
        if digits and any(c not in b"01234567" for c in digits):
            raise self._fault(f"invalid member: {what} is not a number", offset, "octal digits")
        return int(digits, 8) if digits else 0

    def _decimal(self, text: bytes, offset: int) -> int:
        if not text.isdigit() or len(text) > 19:
            raise self._fault("invalid member: size is not a number", offset, "decimal digits")
        return int(text)

    def _small(self, header: _Header) -> bytes:
        """Return the content of a header that describes the next member."""
        if header.size > HEADER_BYTES:
            raise self._fault(f"a header has {counted(header.size, 'byte')}", header.offset, f"at most {HEADER_BYTES}")
        return self._content(header.size)

    def _records(self, content: bytes, offset: int) -> dict[bytes, bytes]:
        """Return the records of a pax header: `LENGTH KEY=VALUE` and a line end each."""
        records: dict[bytes, bytes] = {}
        at = 0
        while at < len(content):
            digits, space, _ = content[at : at + 8].partition(b" ")
            length = int(digits) if space and digits.isdigit() else 0
            key, equals, value = content[at + len(digits) + 1 : at + length].partition(b"=")
            if length <= len(digits) + 1 or at + length > len(content) or not equals or not value.endswith(b"\n"):
                raise self._fault("invalid pax header", offset, "records `LENGTH KEY=VALUE`")
            if key.startswith(b"GNU.sparse."):
                raise self._fault("unsupported sparse file", offset, "only files and directories")
            records[key] = value[:-1]
            at += length
        return records

    def _content(self, size: int, is_kept: bool = True) -> bytes:
        """Return the content of a member; b"" if it is not to be kept. The next header follows."""
        offset = self.stream.tell()
        if offset + size > self.length:
            left = max(self.length - offset, 0)
            text = f"truncated archive: member of {counted(size, 'byte')}, {left} bytes remaining"
            raise self._fault(text, offset, "the whole member")
        content = self.stream.read(size) if is_kept else b""
        self.stream.seek(offset + size + -size % _BLOCK)
        return content

    def _name(self, header: _Header) -> str:
        try:
            name = header.name.decode()
        except UnicodeDecodeError:
            raise self._fault(f"the name {header.name[:60]!r} is not UTF-8", header.offset, "UTF-8") from None
        if name.startswith("/") or ".." in name.split("/") or "\\" in name or not name.isprintable():
            text = f"name {name[:80]!r} is invalid or outside the archive's directory"
            raise self._fault(text, header.offset, "relative names without `..`")
        return "/".join(part for part in name.split("/") if part not in ("", "."))

    def _check_kind(self, header: _Header, name: str) -> None:
        if header.kind not in (*_FILES, b"5"):
            kind = _REFUSED.get(header.kind, f"of the unknown kind {header.kind!r}")
            raise self._fault(f"{name[:80]!r} is {kind}", header.offset, "only files and directories")

    def _check_place(self, header: _Header, name: str) -> None:
        """Report duplicate names, and files with the name of a directory."""
        kind = "directory" if header.kind == b"5" else "file"
        if kind == "file" and not name:
            raise self._fault("missing file name", header.offset, "a name")
        seen = self.kinds.get(name)
        if seen is not None and (seen != kind or kind == "file"):
            raise self._fault(f"duplicate member {name[:80]!r}", header.offset, "unique names")
        self.kinds[name] = kind
        parts = name.split("/")[:-1]
        for count in range(len(parts), 0, -1):
            folder = "/".join(parts[:count])
            if self.kinds.get(folder) == "file":
                raise self._fault(f"{folder[:80]!r} is both a file and a directory", header.offset, "unique names")
            if folder in self.kinds:
                break
            self.kinds[folder] = "directory"

    def _fault(self, message: str, offset: int, expected: str) -> Exception:
        where = f" (at byte {offset})" if offset else ""
        return fault(f"{message}{where}", str(self.path), expected, "no file of the archive was imported")


_FOLDERS = ("codegen/host/", "src/", "parameters/", "executor-config/")
_METADATA = "metadata.json"


@dataclass(frozen=True)
class Library:
    """The files found, by their names in the format: `codegen/host/src/default_lib0.c`."""

    path: Path
    files: Mapping[str, bytes]

    def place(self, name: str) -> str:
        """Return a file's location for messages."""
        return str(self.path / name) if self.path.is_dir() else f"{self.path}({name})"

    def under(self, folder: str, *suffixes: str) -> list[str]:
        """Return the names in a directory with one of these suffixes, with numbers sorted by value."""
        names = [n for n in self.files if n.startswith(folder) and (not suffixes or n.endswith(suffixes))]
        return sorted(names, key=lambda n: (len(n), n))


def read_library(path: Path) -> Library:
    """Return the files of a tar or a directory. Raises OpwestError."""
    if path.is_dir():
        files = _folder(path)
    else:
        with system_faults(path, "cannot read the file"), path.open("rb") as stream:
            files = _Reader(path, stream).files()
    root = _root(files)
    if root is None:
        expected = "metadata.json or a directory codegen/host, as written by TVM's export_model_library_format"
        raise fault("no model in Model Library Format", str(path), expected)
    kept = {n[len(root) :]: c for n, c in files.items() if n.startswith(root) and _is_relevant(n[len(root) :])}
    return Library(path, kept)


def _is_relevant(name: str) -> bool:
    return name == _METADATA or name.startswith(_FOLDERS)


def _maybe_relevant(name: str) -> bool:
    """Return whether a member of a tar can be part of the model, in any root directory; TVM's runtime is not."""
    parts = name.split("/")
    return "runtime" not in parts and any(_is_relevant("/".join(parts[start:])) for start in range(min(len(parts), 4)))


def _root(files: Mapping[str, bytes]) -> str | None:
    """Return the prefix of the format's names; None if they are missing."""
    roots = set()
    for name in files:
        if name == _METADATA or name.endswith(f"/{_METADATA}"):
            roots.add(name[: -len(_METADATA)])
        before, folder, _ = name.partition("codegen/host/")
        if folder and (not before or before.endswith("/")):
            roots.add(before)
    return min(roots, key=lambda r: (r.count("/"), r)) if roots else None


def _folder(path: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    kept = count = 0
    with system_faults(path, "cannot read the directory"):
        for name in (_METADATA, *_FOLDERS):
            for file in _walk(path, path / name):
                count += 1
                size = file.stat().st_size
                kept += size
                if count > MEMBERS or size > MEMBER_BYTES or kept > KEPT_BYTES:
                    limits = f"at most {MEMBERS} files, {MEMBER_BYTES} bytes each, {KEPT_BYTES} together"
                    raise fault("the directory is too large for a model", str(file), limits)
                files[spelled(file.relative_to(path))] = file.read_bytes()
    return files


def _walk(root: Path, start: Path) -> list[Path]:
    """Return the files under a path; links and devices are errors, so that no other files are read."""
    if not start.exists() and not start.is_symlink():
        return []
    files, pending = [], [start]
    while pending:
        path = pending.pop()
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            pending += sorted(path.iterdir())
        elif stat.S_ISREG(mode):
            files.append(path)
        else:
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "neither a file nor a directory"
            raise fault(f"{spelled(path.relative_to(root))!r} is {kind}", str(path), "only files and directories")
        if len(files) + len(pending) > MEMBERS:
            raise fault("the directory has too many files for a model", str(root), f"at most {MEMBERS}")
    return files
