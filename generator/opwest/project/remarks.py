# SPDX-License-Identifier: Apache-2.0
"""Diagnostics about the user's files after an update."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics, Location
from opwest.project.changes import Remark
from opwest.project.merge import OPWESTS, YOURS


def report(project: Path, remarks: Sequence[Remark], faults: Diagnostics, *, preview: bool = False) -> None:
    """Report remarks to `faults`: conflicts as errors, others as warnings or notes.

    With `preview`, no file was written: conflicts have no markers and no second file yet.
    """
    for remark in remarks:
        if preview and remark.kind in ("conflict", "beside"):
            _report_preview(project, remark, faults)
        else:
            _report(project, remark, faults)
    stale = [remark.path for remark in remarks if remark.kind == "stale"]
    if stale:
        files = ", ".join(stale[:5]) + (f" and {len(stale) - 5} more" if len(stale) > 5 else "")
        faults.note(
            f"kept, although newly generated content differs: {files}",
            Location(str(project)),
            hint=f"merge the new content with `opwest update {quoted(str(project))}`",
        )


def _report_preview(project: Path, remark: Remark, faults: Diagnostics) -> None:
    """Report a conflict that an update would cause."""
    place = Location(str(project / remark.path))
    if remark.kind == "beside":
        faults.error(
            "conflict: this file was changed by both you and opwest, and cannot be merged",
            place,
            hint=f"an update would keep your file and write the new one to {project / str(remark.other)}",
        )
        return
    count = len(remark.lines)
    faults.error(
        f"conflict: both you and opwest changed the same lines, in {count} place{'' if count == 1 else 's'}",
        place,
        hint="an update would write both versions into the file, between markers",
    )


def _report(project: Path, remark: Remark, faults: Diagnostics) -> None:
    place = Location(str(project / remark.path))
    other = None if remark.other is None else str(project / remark.other)
    if remark.kind == "conflict":
        for line in remark.lines:
            faults.error(
                "conflict: these lines were changed by both you and opwest",
                Location(place.file, line, 1),
                expected=f"one of the two versions between {YOURS!r} and {OPWESTS!r}",
                hint="edit the lines and delete the three markers",
            )
    elif remark.kind == "unresolved":
        for line in remark.lines:
            faults.error(
                "the file contains markers of an earlier conflict and is not merged",
                Location(place.file, line, 1),
                hint="edit the lines, delete the three markers, and update again",
            )
    elif remark.kind == "beside":
        faults.error(
            "conflict: this file was changed by both you and opwest, and cannot be merged",
            place,
            hint=f"keep your file or replace it with {other}, and delete the other",
        )
    elif remark.kind == "unknown":
        faults.warning(
            "not merged: the generated content that this file is based on is unknown",
            place,
            hint="compare it with the file generated into an empty directory; later updates merge it",
        )
    elif remark.kind == "foreign":
        faults.note("kept: opwest generates a file of this name, but did not write this one", place)
    elif remark.kind == "linked":
        faults.note(
            "kept: opwest does not merge into the target of a symbolic link; newly generated content differs", place
        )
    elif remark.kind == "deleted":
        hint = "to restore it, copy it from a project generated into an empty directory"
        faults.note("not restored: you deleted this file", place, hint=hint)
    elif remark.kind == "released":
        faults.note("kept: no longer generated, but edited by you", place)
