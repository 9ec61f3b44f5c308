# SPDX-License-Identifier: Apache-2.0
"""Check the manifests of an import before its directory gets its final name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location, OpwestError
from opwest.compiler.faults import REPORT, fault
from opwest.pipeline import run
from opwest.project.request import Examination, Request


def checked(
    folder: Path, manifests: Iterable[str], place: str, users: str = "", hint: str = ""
) -> list[list[Examination]]:
    """Return the models and plans of each manifest in a directory, the base first. Raises OpwestError.

    A manifest that opwest refuses is an internal error: the importer accepted the model. `users`: the part of it that
    the user provided; its errors are then errors of the input, about the model. `hint`: the advice of an internal
    error, before the request for a report.
    """
    return [_checked(folder / manifest, place, users, hint) for manifest in manifests]


def _checked(manifest: Path, place: str, users: str, hint: str) -> list[Examination]:
    faults = Diagnostics()
    try:
        examinations = run(Request((manifest,)), faults, "plan").examinations
        faults.raise_if_errors()
    except OpwestError as error:
        if users:
            diagnostics = [
                dataclasses.replace(diagnostic, message=f"with {users}: {diagnostic.message}", location=Location(place))
                for diagnostic in error.diagnostics
            ]
            raise OpwestError(diagnostics) from None
        first = next(diagnostic for diagnostic in error.diagnostics if diagnostic.severity == "error")
        at = first.location
        line = "" if at is None or not at.line else f", line {at.line}"
        raise fault(
            f"internal error: opwest refuses the manifest that the import wrote{line}: {first.message}; "
            "nothing was written",
            place,
            "a manifest that 'opwest check' accepts",
            f"{hint}{REPORT}",
        ) from None
    return examinations
