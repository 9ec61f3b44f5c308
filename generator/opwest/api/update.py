# SPDX-License-Identifier: Apache-2.0
"""`opwest.update`: update projects one after the other; continue after a failure."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from opwest import pipeline
from opwest.api.calls import AnyPath, CallResult, Paths, Words, api_function, path_of, paths_of, words_of
from opwest.api.runtime import check_recorded
from opwest.api.zephyr import warn_of_base, zephyr_options
from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostics, Location, OpwestError, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.objects.model_files import way_of
from opwest.project import migrations
from opwest.project.disk import replace_file
from opwest.project.merge import of_file, unified
from opwest.project.origin import Origin, missing_manifests, read_origin
from opwest.project.request import Request
from opwest.project.store import recorded_twister, report
from opwest.project.writer import FileChange, WriteResult, preview_project, read_record, recover, write_project
from opwest.zephyr.version import twister_files
from opwest.zephyr.workspace import ZephyrOptions

State = Literal["updated", "unchanged", "conflicts", "would change", "failed"]
OWN = ".opwest/"
"""The directory with internal records of opwest in a project."""


@dataclass(frozen=True)
class Conflict:
    """A file that the user and opwest changed."""

    path: str
    lines: tuple[int, ...]
    """The first line of each conflict in the file."""
    beside: str | None
    """The file with the new content, if the file cannot be merged."""


@dataclass(frozen=True)
class ProjectUpdate:
    """The update of one project. Paths are relative to its directory."""

    directory: Path
    state: State
    written: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    kept: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    migrated: tuple[FileChange, ...] = ()
    """The manifests that were migrated to the current version."""
    changes: tuple[FileChange, ...] | None = None
    """The files that would change, with both contents; None if the update was not only previewed."""

    def diff(self, prefix: Path | None = None) -> str:
        """Return the changes as a diff; with `prefix`, the paths of files of opwest are left out and begin with it."""
        if self.changes is None:
            return ""
        changes = self.changes
        if prefix is not None:
            own = [c for c in changes if not c.path.startswith(OWN)]
            changes = tuple(replace(c, path=spelled(prefix / c.path).lstrip("/")) for c in own)
        manifests = (line for c in self.migrated for line in of_file(c.path.lstrip("/"), c.old, c.new))
        return "".join(manifests) + unified(changes)


@dataclass(frozen=True)
class UpdateResult(CallResult):
    """The updates of all projects. If one failed, OpwestError has this as `result`."""

    projects: tuple[ProjectUpdate, ...]

    @property
    def changed(self) -> bool:
        """Whether a project changed, or would change."""
        return any(project.state != "unchanged" for project in self.projects)


FindZephyr = Callable[[tuple[str, ...], str | None], ZephyrOptions]
"""Returns the Zephyr of the build for boards and a version."""


@dataclass(frozen=True)
class UpdateRequest:
    """The options of one update, which override those recorded in projects."""

    zephyr: FindZephyr
    manifests: tuple[Path, ...] = ()
    template: Path | None = None
    own_template: bool = False
    """Whether to use opwest's templates again."""
    boards: tuple[str, ...] = ()
    zephyr_version: str | None = None
    preview: bool = False
    zephyr_base: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of an update, or of its preview."""

    result: WriteResult
    changes: tuple[FileChange, ...] | None
    """The files that would change, for a preview."""
    migrated: tuple[FileChange, ...]
    """Manifests migrated to a newer version."""

    @property
    def state(self) -> Literal["updated", "unchanged", "conflicts", "would change"]:
        """The result as one word."""
        if any(remark.kind in ("conflict", "beside", "unresolved") for remark in self.result.remarks):
            return "conflicts"
        if self.changes is not None:
            return "would change" if self.changes or self.migrated else "unchanged"
        done = self.result
        return "updated" if done.written or done.removed or done.merged or self.migrated else "unchanged"


def update_project(project: Path, request: UpdateRequest, faults: Diagnostics) -> Outcome:
    """Update a project, or preview the update. Raises OpwestError if it cannot be generated."""
    if not request.preview:
        recover(project)
    record = _record(project)
    origin = _origin(project, request, record)
    zephyr = request.zephyr(origin.boards, origin.zephyr_version)
    migrated = _migrate(origin, project, request, faults)
    faults.raise_if_errors()
    current = Request(
        origin.manifests,
        vendored=record.get("runtime") != "module",
        metadata="llvm" if record.get("metadata") == "llvm" else "c",
        targets=origin.targets,
        template=origin.template,
        zephyr=zephyr,
        # A workspace does not decide: the result of an update is the same on every machine.
        twister=twister_files(zephyr.version) if origin.zephyr_version else recorded_twister(record),
        texts={Path(change.path): change.new or b"" for change in migrated} if request.preview else {},
    )
    rendered = pipeline.run(current, faults, "render")
    if not current.vendored:
        check_recorded(project, request.zephyr_base, faults)
    files = [*rendered.files, origin.file(project)]
    changes = None
    if request.preview:
        preview = preview_project(project, files, rendered.record, merging=True)
        result, changes = preview.result, preview.changes
    else:
        result = write_project(project, files, rendered.record, merging=True)
    report(project, result.remarks, faults, preview=request.preview)
    return Outcome(result, changes, migrated)


def _record(project: Path) -> dict[str, Any]:
    record = read_record(project) if project.is_dir() else None
    if record is None:
        hint = way_of(project) or "generate one with 'opwest generate MANIFEST -o DIR'"
        raise fail("not a directory generated by opwest", project, hint=hint)
    if record.get("layout") == "model":
        message = "the directory contains models generated by a build, without an application"
        raise fail(message, project, hint="build again")
    return record


def _origin(project: Path, request: UpdateRequest, record: dict[str, Any]) -> Origin:
    """Return the origin of a project: the recorded one with the overrides of the request."""
    try:
        origin = read_origin(project)
    except OpwestError:
        if not request.manifests:
            raise
        origin = None
    if request.manifests:
        origin = replace(origin or Origin(()), manifests=request.manifests)
    elif origin is None:
        raise _unrecorded_manifests(project, record)
    if fault := missing_manifests(origin.manifests, project):
        raise OpwestError([fault])
    if request.own_template:
        origin = replace(origin, template=None)
    elif request.template is not None:
        origin = replace(origin, template=request.template)
    elif origin.template is not None and not os.path.isdir(origin.template):  # noqa: PTH112  (see missing_manifests)
        raise fail(
            f"template not found: {origin.template}",
            project / ".opwest/origin.json",
            hint="specify it with --template DIR, or use --no-template",
        )
    boards = tuple(dict.fromkeys([*origin.boards, *request.boards]))
    return replace(origin, boards=boards, zephyr_version=request.zephyr_version or origin.zephyr_version)


def _unrecorded_manifests(project: Path, record: dict[str, Any]) -> OpwestError:
    """Return the error for a project of an older version of opwest."""
    models = record.get("models")
    # A record can be damaged, since an update replaces it.
    models = [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    names = ", ".join(repr(str(model.get("name"))) for model in models)
    manifests = [f"--manifest PATH/{model.get('manifest')}" for model in models] or ["--manifest FILE"]
    return fail(
        f"the project does not record the manifests of its model{'' if len(models) == 1 else 's'} {names}",
        project,
        expected=".opwest/origin.json (absent in projects of an older version of opwest)",
        hint=" ".join([f"specify them once: opwest update {quoted(str(project))}", *manifests]),
    )


def _migrate(origin: Origin, project: Path, request: UpdateRequest, faults: Diagnostics) -> tuple[FileChange, ...]:
    """Migrate manifests of an older version, on the disk or for a preview."""
    changes = []
    for path in origin.manifests:
        try:
            content = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue  # loading reports it
        migrated = migrations.migrate(content, str(path), faults)
        if migrated is not None:
            changes.append((path, content, migrated))
    faults.raise_if_errors()
    for path, _, migrated in changes:
        steps = "; ".join(migrated.steps)
        if request.preview:
            faults.note(f"would be migrated from version {migrated.version}: {steps}", Location(str(path)))
        else:
            copy = replace_file(path, migrated.content, f"version{migrated.version}")
            faults.note(
                f"migrated from version {migrated.version}: {steps}",
                Location(str(path)),
                hint=f"the original is in {copy}",
            )
    return tuple(FileChange(str(path), content, migrated.content) for path, content, migrated in changes)


@api_function
def update(
    faults: Diagnostics,
    directories: Paths,
    *,
    dry_run: bool = False,
    check: bool = False,
    manifest: Paths = (),
    template: AnyPath | None = None,
    no_template: bool = False,
    board: Words = (),
    zephyr_version: str | None = None,
    zephyr_base: AnyPath | None = None,
    progress: Callable[[ProjectUpdate], None] | None = None,
) -> UpdateResult:
    """Generate projects again from their manifests, with the recorded options and templates.

    Generated files are replaced. Files that you may edit are merged. With `check` or `dry_run`, nothing is written:
    `changes` of each project has the files that would change. `progress` receives each project after its update.
    """
    if dry_run and check:
        faults.error("--check excludes --dry-run")
    if no_template and template is not None:
        faults.error("--no-template excludes --template")
    faults.raise_if_errors()
    base = path_of(zephyr_base)
    warn_of_base(base, faults)
    projects = _distinct(paths_of(directories))
    if manifest and len(projects) > 1:
        hint = "update the projects with moved manifests one at a time"
        raise fail("--manifest requires a single project", hint=hint)

    @functools.cache
    def of_version(version: str | None) -> ZephyrOptions:
        return zephyr_options((), version, base)

    request = UpdateRequest(
        lambda boards, version: replace(of_version(version), boards=boards),
        paths_of(manifest),
        path_of(template),
        no_template,
        words_of(board),
        zephyr_version,
        preview=check or dry_run,
        zephyr_base=base,
    )
    done = []
    for project in projects:
        done.append(_update_and_report(project, request, faults))
        if progress is not None:
            progress(done[-1])
    return UpdateResult(projects=tuple(done))


def _update_and_report(project: Path, request: UpdateRequest, faults: Diagnostics) -> ProjectUpdate:
    """Update one project, and report its faults."""
    diagnostics = Diagnostics()
    outcome = None
    try:
        outcome = update_project(project, request, diagnostics)
    except OpwestError as error:
        for diagnostic in error.diagnostics:
            diagnostics.add(diagnostic)
    except OSError as error:
        diagnostics.error(f"cannot read the project or its inputs: {error}", Location(str(project)))
    for diagnostic in diagnostics:
        faults.add(diagnostic)
    faults.sources |= diagnostics.sources
    failed = outcome is None or (diagnostics.has_errors and outcome.state != "conflicts")
    return _row(project, outcome, failed=failed)


def _row(project: Path, outcome: Outcome | None, *, failed: bool) -> ProjectUpdate:
    if outcome is None:
        return ProjectUpdate(project, "failed")
    done = outcome.result
    return ProjectUpdate(
        project,
        "failed" if failed else outcome.state,
        done.written,
        done.merged,
        done.removed,
        done.unchanged,
        done.kept,
        tuple(
            Conflict(remark.path, remark.lines, remark.other)
            for remark in done.remarks
            if remark.kind in ("conflict", "beside", "unresolved")
        ),
        outcome.migrated,
        outcome.changes,
    )


def _distinct(directories: tuple[Path, ...]) -> list[Path]:
    """Return the directories without duplicates; different spellings of a path are the same."""
    known: dict[str, Path] = {}
    for directory in directories:
        known.setdefault(os.path.realpath(directory), directory)
    return list(known.values())
