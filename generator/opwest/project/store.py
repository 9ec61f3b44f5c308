# SPDX-License-Identifier: Apache-2.0
"""Write the output of a request: a new or existing application, or models inside a build."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.files import ProjectFile
from opwest.base.paths import collisions, refused_by_windows
from opwest.project.changes import Remark
from opwest.project.merge import OPWESTS, YOURS
from opwest.project.origin import Origin, warn_of_dropped_template
from opwest.project.request import Examination, Request
from opwest.project.writer import WriteResult, read_record, refuse_nested, write_dependencies, write_list, write_project
from opwest.render.templates.files import Templates
from opwest.zephyr.version import SEPARATE, UNIFIED, TwisterFiles, twister_files


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


def check_portable(files: Sequence[ProjectFile], faults: Diagnostics) -> None:
    """Report paths that some file systems do not distinguish, and names that Windows does not permit.

    The latter are errors on Windows, and warnings elsewhere.
    """
    paths = [str(file.path) for file in files]
    for other, name in collisions(paths):
        faults.error(
            f"the files '{other}' and '{name}' of the project differ only in case",
            expected="names that differ in more than case: Windows and macOS ignore it",
            hint="rename the file, or the constant, in the manifest",
        )
    report = faults.error if os.name == "nt" else faults.warning
    for name, reason in refused_by_windows(paths):
        report(f"Windows does not permit the file name '{name}': {reason}", hint="rename the file or the model")


def check_output(request: Request) -> None:
    """Raise OpwestError if the application would be inside another one."""
    if request.layout == "application":
        refuse_nested(request.folder)


def twister_names(request: Request) -> TwisterFiles:
    """Return the names of twister's files; the user owns them, so an existing project keeps its names."""
    if request.twister is not None:
        return request.twister
    record = read_record(request.output) if request.output is not None and request.output.is_dir() else None
    return twister_files(request.zephyr.known_version) if record is None else recorded_twister(record)


def recorded_twister(record: Mapping[str, Any]) -> TwisterFiles:
    """Return the names of twister's files in a project, from its record."""
    return UNIFIED if record.get("twister") == list(UNIFIED) else SEPARATE


def store_inputs(request: Request, found: Sequence[Examination], templates: Templates | None) -> None:
    """Write the list of input files, and the dependencies on them, if requested."""
    own = [] if templates is None else templates.files
    read = [*request.manifests, *(path for one in found for path in one.files), *own]
    if request.inputs is not None:
        write_list(request.inputs, read)
    if request.depfile is not None:
        write_dependencies(request.depfile, read)


def store(
    request: Request, files: Sequence[ProjectFile], record: Mapping[str, Any], faults: Diagnostics
) -> WriteResult:
    """Write the project; report remarks on the user's files."""
    output = request.folder
    if request.layout == "application":
        version = None if request.zephyr.version is None else str(request.zephyr.version)
        origin = Origin(request.manifests, request.template, request.zephyr.boards, version, request.targets)
        warn_of_dropped_template(origin, output, faults)
        files = [*files, origin.file(output)]
    result = write_project(output, files, record)
    report(output, result.remarks, faults)
    return result
