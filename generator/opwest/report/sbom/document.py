# SPDX-License-Identifier: Apache-2.0
"""The data of a bill of materials, in the terms of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3)."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.model.readers.licences import identifiers, normal

NOASSERTION: Final = "NOASSERTION"
DOCUMENT: Final = "SPDXRef-DOCUMENT"
FileType = Literal["SOURCE", "BINARY", "TEXT", "OTHER"]
Purpose = Literal["APPLICATION", "LIBRARY", "SOURCE", "FILE"]


def one_line(value: str) -> str:
    """Return a value that both forms can hold: one line, which cannot end the tag <text> of its own value."""
    printable = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in value.strip())
    return printable.replace("<text>", "< text>").replace("</text>", "< /text>")


@dataclass(frozen=True, slots=True)
class File:
    """A file with its checksums in hexadecimal (SPDX 2.3, clause 8)."""

    id: str
    name: str
    """A relative path with forward slashes."""
    kind: FileType
    sha1: str
    sha256: str
    concluded: str = NOASSERTION
    """A licence expression."""
    declared: str | None = None
    """The licence expression in the file; None without one."""
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Package:
    """A package (clause 7). Without files they are not analyzed."""

    id: str
    name: str
    purpose: Purpose
    version: str | None = None
    licence: str = NOASSERTION
    """The declared licence."""
    files: tuple[File, ...] = ()
    file_name: str | None = None
    sha256: str | None = None
    purl: str | None = None
    """A package URL."""
    comment: str | None = None

    @property
    def concluded(self) -> str:
        """The licence of all files together; without files the declared one (clause 7.13)."""
        if not self.files:
            return self.licence
        found = sorted({file.concluded for file in self.files})
        if NOASSERTION in found:
            return NOASSERTION
        return found[0] if len(found) == 1 else " AND ".join(f"({one})" if " OR " in one else one for one in found)

    @property
    def verification_code(self) -> str:
        """The package verification code (clause 7.9)."""
        return hashlib.sha1("".join(sorted(file.sha1 for file in self.files)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relationship of two elements (clause 11)."""

    one: str
    kind: str
    other: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ExternalDocument:
    """Another SPDX document (clause 6.6); `id` begins with DocumentRef-."""

    id: str
    namespace: str
    sha1: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document (clause 6); `files` belong to no package."""

    name: str
    namespace: str
    created: str
    creator: str
    packages: tuple[Package, ...]
    files: tuple[File, ...]
    relationships: tuple[Relationship, ...]
    externals: tuple[ExternalDocument, ...]
    own_licences: tuple[str, ...]
    """The LicenseRef- identifiers of the document."""


_MAX_BYTES: Final = 1 << 30
_SOURCES: Final = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inc", ".s", ".ll"})
_TEXTS: Final = frozenset(
    {".cmake", ".conf", ".json", ".ld", ".md", ".overlay", ".py", ".txt", ".yaml", ".yml", ".csv"}
)
_OBJECTS: Final = frozenset({".o", ".a", ".elf", ".bc"})
_TAG = re.compile(rb"SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+() \t-]{1,200})")
_HEAD: Final = 4096
"""Bytes of a file in which the tag is searched."""


class Elements:
    """The identifiers of a document: each is used once."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self.own_licences: set[str] = set()

    def id(self, kind: str, name: str) -> str:
        """Return a new identifier: letters, digits, '.' and '-' (SPDX 2.3, clause 3.2)."""
        stem = f"SPDXRef-{kind}-{re.sub(r'[^A-Za-z0-9.]+', '-', name).strip('-') or 'unnamed'}"
        found, number = stem, 1
        while found in self._used:
            number += 1
            found = f"{stem}-{number}"
        self._used.add(found)
        return found

    def file(self, path: Path, name: str, licence: str | None = None, comment: str | None = None) -> File:
        """Return a file. `licence` applies where its text has no tag. Raises OpwestError."""
        content = _content(path)
        declared = self._declared(content)
        concluded = declared or licence or NOASSERTION
        self.note(concluded)
        return File(
            self.id("File", name),
            f"./{name}",
            _kind(name),
            hashlib.sha1(content).hexdigest(),
            hashlib.sha256(content).hexdigest(),
            concluded,
            declared,
            comment,
        )

    def note(self, expression: str) -> None:
        """Record the licences of an expression that are not those of SPDX's list."""
        self.own_licences.update(
            identifier for identifier in identifiers(expression) if identifier.startswith("LicenseRef-")
        )

    def _declared(self, content: bytes) -> str | None:
        """Return the expression of a file's tag; an unknown licence becomes a LicenseRef-."""
        match = _TAG.search(content[:_HEAD])
        if match is None:
            return None
        text = match[1].decode("ascii").strip(" \t-")  # of comments that end in the same line
        try:
            return normal(text)
        except ValueError:
            name = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
            return f"LicenseRef-{name}" if name else None


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _unreadable(path, f"more than {_MAX_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None


def _unreadable(path: Path, reason: str) -> OpwestError:
    hint = "restore the file, or run 'opwest update' or 'opwest generate'"
    return OpwestError(
        [Diagnostic("error", f"cannot read a file of the bill of materials: {reason}", Location(str(path)), hint=hint)]
    )


def _kind(name: str) -> FileType:
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    if suffix in _SOURCES:
        return "SOURCE"
    if suffix in _OBJECTS:
        return "BINARY"
    return "TEXT" if suffix in _TEXTS or path.name == "Kconfig" else "OTHER"
