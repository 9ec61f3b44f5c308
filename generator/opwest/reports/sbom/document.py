# SPDX-License-Identifier: Apache-2.0
"""The data of a bill of materials, in the terms of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3), and its forms."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from opwest.base.diagnostics import fail
from opwest.base.frozen_dataclass import dataclass
from opwest.model.readers.licences import identifiers, normal
from opwest.reports.files import read_limited

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
    id: str = ""

    @property
    def concluded(self) -> str:
        """The licence of all files together; without files the declared one (clause 7.13)."""
        if not self.files:
            return self.licence
        licences = sorted({file.concluded for file in self.files})
        if NOASSERTION in licences:
            return NOASSERTION
        if len(licences) == 1:
            return licences[0]
        return " AND ".join(f"({licence})" if " OR " in licence else licence for licence in licences)

    @property
    def verification_code(self) -> str:
        """The package verification code (clause 7.9)."""
        return hashlib.sha1("".join(sorted(file.sha1 for file in self.files)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relationship of two elements (clause 11)."""

    element: str
    kind: str
    related: str
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
        identifier, number = stem, 1
        while identifier in self._used:
            number += 1
            identifier = f"{stem}-{number}"
        self._used.add(identifier)
        return identifier

    def file(self, path: Path, name: str, licence: str | None = None, comment: str | None = None) -> File:
        """Return a file. `licence` applies where its text has no tag. Raises OpwestError."""
        try:
            content = read_limited(path, _MAX_BYTES)
        except ValueError as error:
            hint = "restore the file, or run 'opwest update' or 'opwest generate'"
            raise fail(f"cannot read a file of the bill of materials: {error}", path, hint=hint) from None
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
        self.own_licences.update(name for name in identifiers(expression) if name.startswith("LicenseRef-"))

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


def _kind(name: str) -> FileType:
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    if suffix in _SOURCES:
        return "SOURCE"
    if suffix in _OBJECTS:
        return "BINARY"
    return "TEXT" if suffix in _TEXTS or path.name == "Kconfig" else "OTHER"


def spdx_json(document: Document) -> str:
    """Return the document as indented JSON (schemas/spdx-schema.json of the specification)."""
    files = list(document.files)
    relationships = list(document.relationships)
    for package in document.packages:
        files += package.files
        relationships += [Relationship(package.id, "CONTAINS", file.id) for file in package.files]
    value: dict[str, Any] = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": document.name,
        "documentNamespace": document.namespace,
        "creationInfo": {"created": document.created, "creators": [document.creator]},
        "externalDocumentRefs": [
            {
                "externalDocumentId": external.id,
                "spdxDocument": external.namespace,
                "checksum": {"algorithm": "SHA1", "checksumValue": external.sha1},
            }
            for external in document.externals
        ],
        "packages": [_package_value(package) for package in document.packages],
        "files": [_file_value(file) for file in files],
        "hasExtractedLicensingInfos": [
            {"licenseId": licence, "extractedText": licence, "name": licence} for licence in document.own_licences
        ],
        "relationships": [_relationship_value(relationship) for relationship in relationships],
    }
    kept = {key: item for key, item in value.items() if item != []}
    return json.dumps(kept, indent=2, ensure_ascii=True) + "\n"


def _package_value(package: Package) -> dict[str, Any]:
    """Return a package, without its files."""
    value: dict[str, Any] = {
        "SPDXID": package.id,
        "name": package.name,
        "versionInfo": package.version,
        "packageFileName": package.file_name,
        "supplier": NOASSERTION,
        "downloadLocation": NOASSERTION,
        "filesAnalyzed": bool(package.files),
        "licenseConcluded": package.concluded,
        "licenseDeclared": package.licence,
        "copyrightText": NOASSERTION,
        "comment": package.comment,
        "primaryPackagePurpose": package.purpose,
    }
    if package.files:
        value["packageVerificationCode"] = {"packageVerificationCodeValue": package.verification_code}
        licences = {licence for file in package.files if file.declared for licence in identifiers(file.declared)}
        value["licenseInfoFromFiles"] = sorted(licences) or [NOASSERTION]
    if package.sha256 is not None:
        value["checksums"] = [{"algorithm": "SHA256", "checksumValue": package.sha256}]
    if package.purl is not None:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": package.purl}
        value["externalRefs"] = [reference]
    return _present(value)


def _file_value(file: File) -> dict[str, Any]:
    """Return a file."""
    return _present(
        {
            "SPDXID": file.id,
            "fileName": file.name,
            "fileTypes": [file.kind],
            "checksums": [
                {"algorithm": "SHA1", "checksumValue": file.sha1},
                {"algorithm": "SHA256", "checksumValue": file.sha256},
            ],
            "licenseConcluded": file.concluded,
            "licenseInfoInFiles": identifiers(file.declared) if file.declared else [NOASSERTION],
            "copyrightText": NOASSERTION,
            "comment": file.comment,
        }
    )


def _relationship_value(relationship: Relationship) -> dict[str, Any]:
    """Return a relationship."""
    return _present(
        {
            "spdxElementId": relationship.element,
            "relationshipType": relationship.kind,
            "relatedSpdxElement": relationship.related,
            "comment": relationship.comment,
        }
    )


def _present(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


_PACKAGE: Final = (
    ("name", "PackageName"),
    ("SPDXID", "SPDXID"),
    ("versionInfo", "PackageVersion"),
    ("packageFileName", "PackageFileName"),
    ("supplier", "PackageSupplier"),
    ("downloadLocation", "PackageDownloadLocation"),
    ("filesAnalyzed", "FilesAnalyzed"),
    ("packageVerificationCode", "PackageVerificationCode"),
    ("checksums", "PackageChecksum"),
    ("licenseConcluded", "PackageLicenseConcluded"),
    ("licenseInfoFromFiles", "PackageLicenseInfoFromFiles"),
    ("licenseDeclared", "PackageLicenseDeclared"),
    ("copyrightText", "PackageCopyrightText"),
    ("comment", "PackageComment"),
    ("externalRefs", "ExternalRef"),
    ("primaryPackagePurpose", "PrimaryPackagePurpose"),
)
_FILE: Final = (
    ("fileName", "FileName"),
    ("SPDXID", "SPDXID"),
    ("fileTypes", "FileType"),
    ("checksums", "FileChecksum"),
    ("licenseConcluded", "LicenseConcluded"),
    ("licenseInfoInFiles", "LicenseInfoInFile"),
    ("copyrightText", "FileCopyrightText"),
    ("comment", "FileComment"),
)


def tag_value(document: Document) -> str:
    """Return the document as text; a file belongs to the package before it."""
    return "\n".join(_document(document)) + "\n"


def _document(document: Document) -> Iterator[str]:
    yield "SPDXVersion: SPDX-2.3"
    yield "DataLicense: CC0-1.0"
    yield "SPDXID: SPDXRef-DOCUMENT"
    yield f"DocumentName: {one_line(document.name)}"
    yield f"DocumentNamespace: {document.namespace}"
    for external in document.externals:
        yield f"ExternalDocumentRef: {external.id} {external.namespace} SHA1: {external.sha1}"
    yield f"Creator: {document.creator}"
    yield f"Created: {document.created}"
    for file in document.files:
        yield from _element(_file_value(file), _FILE)
    for package in document.packages:
        yield from _element(_package_value(package), _PACKAGE)
        for file in package.files:
            yield from _element(_file_value(file), _FILE)
    for licence in document.own_licences:
        yield ""
        yield f"LicenseID: {licence}"
        yield f"ExtractedText: {_text(licence)}"
        yield f"LicenseName: {licence}"
    yield ""
    for value in map(_relationship_value, document.relationships):
        yield f"Relationship: {value['spdxElementId']} {value['relationshipType']} {value['relatedSpdxElement']}"
        if "comment" in value:
            yield f"RelationshipComment: {_text(value['comment'])}"


def _element(value: Mapping[str, Any], tags: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Return an empty line, and a line for each value; a list has a line for each member."""
    yield ""
    for key, tag in tags:
        content = value.get(key, [])
        for item in content if isinstance(content, list) else [content]:
            yield f"{tag}: {_text(item) if key == 'comment' else _shown(item)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return one_line(value)
    members = list(value.values())
    # The algorithm of a checksum has a colon; a reference has a category, a type and a locator.
    return ": ".join(members) if "algorithm" in value else " ".join(members)


def _text(value: str) -> str:
    return f"<text>{one_line(value)}</text>"
