# SPDX-License-Identifier: Apache-2.0
"""Make the bill of materials of a project for `opwest report --sbom`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from opwest.base.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.project.lock import read_lock
from opwest.project.request import of_variant
from opwest.report.collect import collect
from opwest.report.files import write_own
from opwest.report.images import add_images
from opwest.report.make import Inputs
from opwest.report.sbom.collect import CREATOR, bill_of_materials, check_images, read_build
from opwest.report.sbom.document import Document
from opwest.report.sbom.writers import spdx_json, tag_value

_MARK = CREATOR.partition("-")[0]


def make_sbom(inputs: Inputs, images: Sequence[Path], build: Path | None, faults: Diagnostics) -> Document:
    """Return the bill of materials of a project. Raises OpwestError for manifests, and for an outdated project."""
    project = inputs.project
    lock = None if project is None else read_lock(project)
    if project is None or lock is None:
        raise _fault("--sbom requires a generated application", hint="opwest generate MANIFEST -o DIR")
    if inputs.stale:
        hint = f"run 'opwest update {project}'"
        raise _fault("cannot write the bill of materials: the project is out of date", project, hint=hint)
    files = [*lock.files, *(name for name in lock.user if (project / name).is_file())]
    models = [one.model for one in inputs.found]
    linked = [(path, _models_in(path, inputs, faults)) for path in images]
    faults.raise_if_errors()
    document = None if build is None else read_build(build)
    if build is not None and document is not None:
        check_images(document, build, images, faults)
    return bill_of_materials(project, sorted(files), models, creation_time(), linked, document)


def creation_time() -> str:
    """Return the time SOURCE_DATE_EPOCH; without it the start of 1970, so that equal inputs give equal documents.

    Raises OpwestError for another value than seconds. See https://reproducible-builds.org/specs/source-date-epoch/.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH") or "0"
    try:
        if not given.isascii() or not given.isdigit():
            raise ValueError
        return datetime.fromtimestamp(int(given), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        raise _fault(f"SOURCE_DATE_EPOCH is {given!r}", expected="seconds since 1970, such as 1767225600") from None


def render_sbom(document: Document, path: Path) -> str:
    """Return the text of a document: JSON for the suffix .json, otherwise tag-value."""
    return spdx_json(document) if path.suffix.lower() == ".json" else tag_value(document)


def write_sbom(path: Path, content: str) -> None:
    """Write a bill of materials; replace an earlier one. Raises OpwestError for any other file."""
    write_own(path, content, "bill of materials", "bills of materials of 'opwest report'", is_sbom)


def is_sbom(path: Path) -> bool:
    """Whether a file is empty, or a bill of materials by opwest."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return not start.strip() or (b"SPDX-2." in start and _MARK.encode() in start)


def _models_in(path: Path, inputs: Inputs, faults: Diagnostics) -> tuple[str, ...]:
    models = add_images([collect(one) for one in of_variant(inputs.found, None, faults)], [path], faults)
    return tuple(model.name for model in models if model.images)


def _fault(
    message: str, place: Path | None = None, *, expected: str | None = None, hint: str | None = None
) -> OpwestError:
    return OpwestError([Diagnostic("error", message, None if place is None else Location(str(place)), expected, hint)])
