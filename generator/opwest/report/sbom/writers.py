# SPDX-License-Identifier: Apache-2.0
"""A bill of materials as JSON of SPDX 2.3 (schemas/spdx-schema.json of the specification). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from opwest.model.readers.licences import identifiers
from opwest.report.sbom.document import DOCUMENT, NOASSERTION, Document, File, Package, Relationship, one_line


def spdx_json(document: Document) -> str:
    """Return the document as indented JSON."""
    contained = [
        Relationship(package.id, "CONTAINS", file.id) for package in document.packages for file in package.files
    ]
    files = [*document.files, *(file for package in document.packages for file in package.files)]
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
        "packages": [package_value(one) for one in document.packages],
        "files": [file_value(one) for one in files],
        "hasExtractedLicensingInfos": [
            {"licenseId": own_licence, "extractedText": own_licence, "name": own_licence}
            for own_licence in document.own_licences
        ],
        "relationships": [relationship_value(relationship) for relationship in (*document.relationships, *contained)],
    }
    kept = {key: item for key, item in value.items() if item != []}
    return json.dumps(kept, indent=2, ensure_ascii=True) + "\n"


def package_value(package: Package) -> dict[str, Any]:
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
        found = {identifier for file in package.files if file.declared for identifier in identifiers(file.declared)}
        value["licenseInfoFromFiles"] = sorted(found) or [NOASSERTION]
    if package.sha256 is not None:
        value["checksums"] = [{"algorithm": "SHA256", "checksumValue": package.sha256}]
    if package.purl is not None:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": package.purl}
        value["externalRefs"] = [reference]
    return _present(value)


def file_value(file: File) -> dict[str, Any]:
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


def relationship_value(relationship: Relationship) -> dict[str, Any]:
    """Return a relationship."""
    return _present(
        {
            "spdxElementId": relationship.one,
            "relationshipType": relationship.kind,
            "relatedSpdxElement": relationship.other,
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
