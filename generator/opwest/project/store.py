# SPDX-License-Identifier: Apache-2.0
"""Write the output of a request: a new or existing application, or models inside a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwest.diagnostics import Diagnostics
from opwest.files import ProjectFile
from opwest.project.origin import Origin, warn_of_dropped_template
from opwest.project.remarks import report
from opwest.request import Examination, Request
from opwest.templates import Templates
from opwest.write import WriteResult, read_record, write_project
from opwest.write.writer import refuse_nested, write_dependencies, write_list
from opwest.zephyr.version import SEPARATE, UNIFIED, TwisterFiles, twister_files


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
