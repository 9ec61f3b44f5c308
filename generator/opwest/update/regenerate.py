# SPDX-License-Identifier: Apache-2.0
"""Updating one project: from its manifests, its options and its template, as it remembers them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from opwest import pipeline
from opwest.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.project.merge import MERGING
from opwest.project.origin import Origin, moved, read_origin
from opwest.project.remarks import report
from opwest.request import Request
from opwest.update import migrations
from opwest.write import FileChange, WriteResult, preview_project, read_record, recover, write_project
from opwest.write.single import replace_file
from opwest.zephyr.options import ZephyrOptions

FindZephyr = Callable[[tuple[str, ...], str | None], ZephyrOptions]
"""Returns what is known of the Zephyr that will build, for boards and a version."""


@dataclass(frozen=True)
class UpdateRequest:
    """What a user asks for, beside what projects remember."""

    zephyr: FindZephyr
    manifests: tuple[Path, ...] = ()
    template: Path | None = None
    own_template: bool = False
    """Back to the templates of opwest."""
    boards: tuple[str, ...] = ()
    zephyr_version: str | None = None
    preview: bool = False


@dataclass(frozen=True)
class Outcome:
    """What was done to a project, or would be done."""

    result: WriteResult
    changes: tuple[FileChange, ...] | None
    """Every file that would change, where nothing was to be written."""
    migrated: tuple[FileChange, ...]
    """Manifests that were brought to a newer version, or would be."""

    @property
    def state(self) -> Literal["updated", "unchanged", "conflicts", "would change"]:
        """What happened, in a word."""
        if any(remark.kind in ("conflict", "beside", "unresolved") for remark in self.result.remarks):
            return "conflicts"
        if self.changes is not None:
            return "would change" if self.changes or self.migrated else "unchanged"
        done = self.result
        return "updated" if done.written or done.removed or done.merged or self.migrated else "unchanged"


def update_project(project: Path, request: UpdateRequest, faults: Diagnostics) -> Outcome:
    """Make a project again, or look at what that would do. Raises OpwestError where it can't be made."""
    if not request.preview:
        recover(project)
    record = _record(project)
    origin = _origin(project, request, record)
    zephyr = request.zephyr(origin.boards, origin.zephyr_version)
    migrated = _migrate(origin, project, request, faults)
    faults.raise_if_errors()
    wanted = Request(
        origin.manifests,
        vendored=record.get("runtime") != "module",
        metadata="llvm" if record.get("metadata") == "llvm" else "c",
        template=origin.template,
        zephyr=zephyr,
        texts={Path(change.path): change.new or b"" for change in migrated} if request.preview else {},
    )
    made = pipeline.run(wanted, faults, "render")
    files = [*made.files, origin.file(project)]
    changes = None
    if request.preview:
        preview = preview_project(project, files, made.record, merging=MERGING)
        result, changes = preview.result, preview.changes
    else:
        result = write_project(project, files, made.record, merging=MERGING)
    report(project, result.remarks, faults)
    return Outcome(result, changes, migrated)


def _record(project: Path) -> dict[str, Any]:
    record = read_record(project) if project.is_dir() else None
    if record is None:
        raise _fault(
            "this is not a folder that opwest generated",
            project,
            hint="opwest generate MANIFEST -o DIR makes one",
        )
    if record.get("layout") == "model":
        raise _fault(
            "this holds models without an application, made inside a build", project, hint="build again instead"
        )
    return record


def _origin(project: Path, request: UpdateRequest, record: dict[str, Any]) -> Origin:
    """Return what a project is made from: what it remembers, changed by what the command line says."""
    if request.manifests:
        origin = _remembered(project) or Origin(())
        origin = replace(origin, manifests=request.manifests)
    else:
        known = read_origin(project)
        if known is None:
            raise _fault(
                f"the project does not say where {_models(record)} made from",
                project,
                expected=".opwest/origin.json, which an older opwest did not write",
                hint=f"say it once: opwest update {shlex.quote(str(project))} " + " ".join(_manifest_options(record)),
            )
        origin = known
    if fault := moved(origin.manifests, project):
        raise OpwestError([fault])
    if request.own_template:
        origin = replace(origin, template=None)
    elif request.template is not None:
        origin = replace(origin, template=request.template)
    elif origin.template is not None and not os.path.isdir(origin.template):  # noqa: PTH112  (see moved)
        raise _fault(
            f"the template is no longer where it was: {origin.template}",
            project / ".opwest/origin.json",
            hint="say where it is with --template DIR, or leave it with --no-template",
        )
    boards = tuple(dict.fromkeys([*origin.boards, *request.boards]))
    return replace(origin, boards=boards, zephyr_version=request.zephyr_version or origin.zephyr_version)


def _remembered(project: Path) -> Origin | None:
    """Return the origin, None where there is none that can be read: the manifests are given anyway."""
    try:
        return read_origin(project)
    except OpwestError:
        return None


def _models(record: dict[str, Any]) -> str:
    names = [str(model.get("name")) for model in _listed(record)]
    return f"its model {names[0]!r} was" if len(names) == 1 else f"its models {', '.join(map(repr, names))} were"


def _listed(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the models of a record; an update repairs one that was damaged."""
    models = record.get("models")
    return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []


def _manifest_options(record: dict[str, Any]) -> list[str]:
    names = [str(model.get("manifest")) for model in _listed(record)]
    return [f"--manifest PATH/{name}" for name in names] or ["--manifest FILE"]


def _migrate(origin: Origin, project: Path, request: UpdateRequest, faults: Diagnostics) -> tuple[FileChange, ...]:
    """Bring manifests of an older version to today's: on the disk, or only in a preview."""
    found = []
    for path in origin.manifests:
        try:
            content = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue  # loading it says so
        migrated = migrations.migrate(content, str(path), faults)
        if migrated is None:
            continue
        found.append((path, content, migrated))
    faults.raise_if_errors()
    for path, _, migrated in found:
        steps = "; ".join(migrated.steps)
        if request.preview:
            faults.note(f"would be brought from version {migrated.version} to today's: {steps}", Location(str(path)))
        else:
            copy = replace_file(path, migrated.content, f"version{migrated.version}")
            faults.note(
                f"brought from version {migrated.version} to today's: {steps}",
                Location(str(path)),
                hint=f"what it was is in {copy}",
            )
    return tuple(FileChange(str(path), content, migrated.content) for path, content, migrated in found)


def _fault(message: str, place: Path, *, expected: str | None = None, hint: str | None = None) -> OpwestError:
    return OpwestError([Diagnostic("error", message, Location(str(place)), expected=expected, hint=hint)])
