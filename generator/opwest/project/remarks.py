# SPDX-License-Identifier: Apache-2.0
"""What was found about the user's files, as a user reads it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from opwest.diagnostics import Diagnostics, Location
from opwest.project.merge import OPWESTS, YOURS
from opwest.write import Remark


def report(project: Path, remarks: Sequence[Remark], faults: Diagnostics) -> None:
    """Add what a user should know, and what the user has to do, to `faults`."""
    for remark in remarks:
        _report(project, remark, faults)
    stale = [remark.path for remark in remarks if remark.kind == "stale"]
    if stale:
        files = ", ".join(stale[:5]) + (f" and {len(stale) - 5} more" if len(stale) > 5 else "")
        faults.note(
            f"kept as you have it, and would now be generated otherwise: {files}",
            Location(str(project)),
            hint=f"merge what is new into yours: opwest update {shlex.quote(str(project))}",
        )


def _report(project: Path, remark: Remark, faults: Diagnostics) -> None:
    place = Location(str(project / remark.path))
    other = None if remark.other is None else str(project / remark.other)
    if remark.kind == "conflict":
        for line in remark.lines:
            faults.error(
                "conflict: you changed these lines, and so did opwest",
                Location(place.file, line, 1),
                expected=f"what is right of the two, between {YOURS!r} and {OPWESTS!r}",
                hint="edit the lines and delete the three markers; nothing else is to be done",
            )
    elif remark.kind == "unresolved":
        for line in remark.lines:
            faults.error(
                "the markers of an earlier conflict are still here: the file stays as it is until they are gone",
                Location(place.file, line, 1),
                hint="edit the lines, delete the three markers, and update again",
            )
    elif remark.kind == "beside":
        faults.error(
            "conflict: you changed this file, and so did opwest, and the two cannot be merged",
            place,
            hint=f"yours is kept, the new one is {other}: take the one that is right, and delete the other",
        )
    elif remark.kind == "unknown":
        faults.warning(
            "kept as it is: what opwest had generated when you got this file is not known, so nothing can be merged",
            place,
            hint="compare it with what is generated into an empty folder; from now on it is merged",
        )
    elif remark.kind == "foreign":
        faults.note("kept: opwest would generate a file of this name too, but did not write this one", place)
    elif remark.kind == "linked":
        faults.note("kept: opwest does not merge into what a link leads to, and would generate something else", place)
    elif remark.kind == "deleted":
        hint = "to have it again, generate into an empty folder and copy it from there"
        faults.note("you deleted this file, and it stays deleted", place, hint=hint)
    elif remark.kind == "released":
        faults.note("no longer generated, but yours: kept", place)
