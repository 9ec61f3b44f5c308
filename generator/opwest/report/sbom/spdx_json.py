# SPDX-License-Identifier: Apache-2.0
"""A bill of materials as JSON of SPDX 2.3 (schemas/spdx-schema.json of the specification). Pure."""

from __future__ import annotations

import json
from typing import Any

from opwest.model.licences import identifiers
from opwest.report.sbom.document import DOCUMENT, NOASSERTION, Document, File, Package, Relationship


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
                "externalDocumentId": one.id,
                "spdxDocument": one.namespace,
                "checksum": {"algorithm": "SHA1", "checksumValue": one.sha1},
            }
            for one in document.externals
        ],
        "packages": [package_value(one) for one in document.packages],
        "files": [file_value(one) for one in files],
        "hasExtractedLicensingInfos": [
            {"licenseId": one, "extractedText": one, "name": one} for one in document.own_licences
        ],
        "relationships": [relationship_value(one) for one in (*document.relationships, *contained)],
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
        found = {one for file in package.files if file.declared for one in identifiers(file.declared)}
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


def relationship_value(one: Relationship) -> dict[str, Any]:
    """Return a relationship."""
    return _present(
        {
            "spdxElementId": one.one,
            "relationshipType": one.kind,
            "relatedSpdxElement": one.other,
            "comment": one.comment,
        }
    )


def _present(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}
