# SPDX-License-Identifier: Apache-2.0
"""The data of a bill of materials, in the terms of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3)."""

from __future__ import annotations

import hashlib
from typing import Final, Literal

from opwest.records import dataclass

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
