# SPDX-License-Identifier: Apache-2.0
"""A bill of materials as tag-value text, the form that Zephyr's `west spdx` writes. Pure.

The values are those of the JSON form (spdx_json.py); the tables contain the tag of each key, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from opwest.report.sbom.document import Document, one_line
from opwest.report.sbom.spdx_json import file_value, package_value, relationship_value

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
        yield from _element(file_value(file), _FILE)
    for package in document.packages:
        yield from _element(package_value(package), _PACKAGE)
        for file in package.files:
            yield from _element(file_value(file), _FILE)
    for licence in document.own_licences:
        yield ""
        yield f"LicenseID: {licence}"
        yield f"ExtractedText: {_text(licence)}"
        yield f"LicenseName: {licence}"
    yield ""
    for value in map(relationship_value, document.relationships):
        yield f"Relationship: {value['spdxElementId']} {value['relationshipType']} {value['relatedSpdxElement']}"
        if "comment" in value:
            yield f"RelationshipComment: {_text(value['comment'])}"


def _element(value: Mapping[str, Any], tags: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Return an empty line, and a line for each value; a list has a line for each member."""
    yield ""
    for key, tag in tags:
        found = value.get(key, [])
        for one in found if isinstance(found, list) else [found]:
            yield f"{tag}: {_text(one) if key == 'comment' else _shown(one)}"


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
