# SPDX-License-Identifier: Apache-2.0
"""Write the output of a request: a new or existing application, or models inside a build."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from opwest.base.diagnostics import Diagnostics
from opwest.base.paths import collisions, refused_by_windows
from opwest.base.project_files import ProjectFile
from opwest.project.origin import Origin, warn_of_dropped_template
from opwest.project.remarks import report
from opwest.project.request import Examination, Request
from opwest.project.writer import WriteResult, read_record, refuse_nested, write_dependencies, write_list, write_project
from opwest.render.templates.files import Templates
from opwest.zephyr.version import SEPARATE, UNIFIED, TwisterFiles, twister_files


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
