# SPDX-License-Identifier: Apache-2.0
"""Write the output of a request: a new or existing application, or models inside a build."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostic, Diagnostics, Location, Severity
from opwest.base.files import ProjectFile
from opwest.base.paths import collisions, refused_by_windows
from opwest.project.merge import OPWESTS, YOURS
from opwest.project.origin import Origin, warn_of_dropped_template
from opwest.project.request import Examination, Request
from opwest.project.user_files import Remark
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
        hint = f"an update would keep your file and write the new one to {project / str(remark.other)}"
        faults.error(_CONFLICT, place, hint=hint)
        return
    count = len(remark.lines)
    faults.error(
        f"conflict: both you and opwest changed the same lines, in {count} place{'' if count == 1 else 's'}",
        place,
        hint="an update would write both versions into the file, between markers",
    )


_CONFLICT = "conflict: this file was changed by both you and opwest, and cannot be merged"
_TEXTS: Mapping[str, tuple[Severity, str, str | None]] = {
    "conflict": (
        "error",
        "conflict: these lines were changed by both you and opwest",
        "edit the lines and delete the three markers",
    ),
    "unresolved": (
        "error",
        "the file contains markers of an earlier conflict and is not merged",
        "edit the lines, delete the three markers, and update again",
    ),
    "beside": ("error", _CONFLICT, "keep your file or replace it with {other}, and delete the other"),
    "unknown": (
        "warning",
        "not merged: the generated content that this file is based on is unknown",
        "compare it with the file generated into an empty directory; later updates merge it",
    ),
    "foreign": ("note", "kept: opwest generates a file of this name, but did not write this one", None),
    "linked": (
        "note",
        "kept: opwest does not merge into the target of a symbolic link; newly generated content differs",
        None,
    ),
    "deleted": (
        "note",
        "not restored: you deleted this file",
        "to restore it, copy it from a project generated into an empty directory",
    ),
    "rewritten": ("note", "yours, not merged: it no longer contains the generated demo", None),
    "released": ("note", "kept: no longer generated, but edited by you", None),
}
"""By kind of remark: the severity, the message and the hint. Files of the kind `stale` are reported together."""


def _report(project: Path, remark: Remark, faults: Diagnostics) -> None:
    if remark.kind not in _TEXTS:
        return
    severity, message, hint = _TEXTS[remark.kind]
    is_conflict = remark.kind == "conflict"
    expected = f"one of the two versions between {YOURS!r} and {OPWESTS!r}" if is_conflict else None
    if remark.other is not None and hint is not None:
        hint = hint.format(other=project / remark.other)
    file = str(project / remark.path)
    for place in [Location(file, line, 1) for line in remark.lines] or [Location(file)]:
        faults.add(Diagnostic(severity, message, place, expected, hint))


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


def store_inputs(request: Request, examinations: Sequence[Examination], templates: Templates | None) -> None:
    """Write the list of input files, and the dependencies on them, if requested."""
    own = [] if templates is None else templates.files
    read = [*request.manifests, *(path for examination in examinations for path in examination.files), *own]
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
