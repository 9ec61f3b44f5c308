# SPDX-License-Identifier: Apache-2.0
"""A bill of materials as tag-value text, the form that Zephyr's `west spdx` writes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.model.licences import identifiers
from opwest.report.sbom.document import NOASSERTION, Document, File, Package, Relationship
from opwest.report.sbom.document import one_line as _line


def tag_value(document: Document) -> str:
    """Return the document as text; a file belongs to the package before it."""
    return "\n".join(_document(document)) + "\n"


def _document(document: Document) -> Iterator[str]:
    yield "SPDXVersion: SPDX-2.3"
    yield "DataLicense: CC0-1.0"
    yield "SPDXID: SPDXRef-DOCUMENT"
    yield f"DocumentName: {_line(document.name)}"
    yield f"DocumentNamespace: {document.namespace}"
    for external in document.externals:
        yield f"ExternalDocumentRef: {external.id} {external.namespace} SHA1: {external.sha1}"
    yield f"Creator: {document.creator}"
    yield f"Created: {document.created}"
    for file in document.files:
        yield from _file(file)
    for package in document.packages:
        yield from _package(package)
        for file in package.files:
            yield from _file(file)
    for licence in document.own_licences:
        yield ""
        yield f"LicenseID: {licence}"
        yield f"ExtractedText: {_text(licence)}"
        yield f"LicenseName: {licence}"
    yield ""
    for relationship in document.relationships:
        yield from _relationship(relationship)


def _package(package: Package) -> Iterator[str]:
    yield ""
    yield f"PackageName: {_line(package.name)}"
    yield f"SPDXID: {package.id}"
    if package.version is not None:
        yield f"PackageVersion: {_line(package.version)}"
    if package.file_name is not None:
        yield f"PackageFileName: {_line(package.file_name)}"
    yield f"PackageDownloadLocation: {NOASSERTION}"
    yield f"FilesAnalyzed: {'true' if package.files else 'false'}"
    if package.files:
        yield f"PackageVerificationCode: {package.verification_code}"
    if package.sha256 is not None:
        yield f"PackageChecksum: SHA256: {package.sha256}"
    yield f"PackageLicenseConcluded: {package.licence}"
    for one in _found(package.files) if package.files else ():
        yield f"PackageLicenseInfoFromFiles: {one}"
    yield f"PackageLicenseDeclared: {package.licence}"
    yield f"PackageCopyrightText: {NOASSERTION}"
    if package.comment is not None:
        yield f"PackageComment: {_text(package.comment)}"
    if package.purl is not None:
        yield f"ExternalRef: PACKAGE-MANAGER purl {package.purl}"
    yield f"PrimaryPackagePurpose: {package.purpose}"


def _file(file: File) -> Iterator[str]:
    yield ""
    yield f"FileName: {_line(file.name)}"
    yield f"SPDXID: {file.id}"
    yield f"FileType: {file.kind}"
    yield f"FileChecksum: SHA1: {file.sha1}"
    yield f"FileChecksum: SHA256: {file.sha256}"
    yield f"LicenseConcluded: {file.concluded}"
    for one in identifiers(file.declared) if file.declared else [NOASSERTION]:
        yield f"LicenseInfoInFile: {one}"
    yield f"FileCopyrightText: {NOASSERTION}"
    if file.comment is not None:
        yield f"FileComment: {_text(file.comment)}"


def _relationship(relationship: Relationship) -> Iterator[str]:
    yield f"Relationship: {relationship.one} {relationship.kind} {relationship.other}"
    if relationship.comment is not None:
        yield f"RelationshipComment: {_text(relationship.comment)}"


def _found(files: tuple[File, ...]) -> list[str]:
    """Return the licences in the files of a package."""
    return sorted({one for file in files if file.declared for one in identifiers(file.declared)}) or [NOASSERTION]


def _text(value: str) -> str:
    return f"<text>{_line(value)}</text>"
