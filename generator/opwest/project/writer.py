# SPDX-License-Identifier: Apache-2.0
"""Write a generated project atomically, without overwriting the user's changes.

The order of a run: reject a foreign directory; take the mutex; complete or revert an interrupted run; plan all
changes; stage the contents; publish the journal (this commits the change); move the files; remove the stage.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from opwest.base.diagnostics import fail
from opwest.base.files import ProjectFile
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import in_make, spelled
from opwest.project import disk, journal
from opwest.project.disk import system_faults
from opwest.project.lock import Lock, read_lock, record_text
from opwest.project.user_files import Plan, Remark, check_paths, decide

_AS_BEFORE = "the project is unchanged"
_UNFINISHED = "the project is incomplete: remove the cause and run opwest again to complete it"


@dataclass(frozen=True)
class WriteResult:
    """The result of a run: files written and removed, the number unchanged, user's files kept or merged."""

    written: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    merged: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class FileChange:
    """The change of one file in a preview; None for a missing file."""

    path: str
    old: bytes | None
    new: bytes | None


@dataclass(frozen=True)
class Preview:
    """The changes that a run would make."""

    result: WriteResult
    changes: tuple[FileChange, ...]


def write_project(
    directory: Path, files: Sequence[ProjectFile], record: Mapping[str, Any], *, merging: bool = False
) -> WriteResult:
    """Write `files` to the project `directory` and remove its other generated files; store `record` for `read_record`.

    With `merging`, files of the user are merged with the new content; without, they are not changed.
    """
    check_paths(files)
    text = record_text(record)
    with system_faults(directory, "cannot write the project", _AS_BEFORE):
        _refuse_foreign(directory)
        _make_own_folder(directory)
        with journal.held(directory):
            with system_faults(directory, "cannot complete an interrupted run", _UNFINISHED):
                journal.resume(directory)
            plan = decide(directory, files, read_lock(directory) or Lock(), text, merging=merging)
            if plan.changes:
                _apply(directory, plan)
    return _result(plan)


def preview_project(
    directory: Path, files: Sequence[ProjectFile], record: Mapping[str, Any], *, merging: bool = False
) -> Preview:
    """Return the changes that `write_project` would make."""
    check_paths(files)
    text = record_text(record)
    with system_faults(directory, "cannot read the project"):
        _refuse_foreign(directory)
        if journal.is_pending(directory):
            message = "an interrupted run must be completed before a preview"
            raise fail(message, directory, hint="repeat the interrupted command, or run `opwest update`")
        plan = decide(directory, files, read_lock(directory) or Lock(), text, merging=merging)
        changes = tuple(
            FileChange(change.path, None if change.old is None else (directory / change.path).read_bytes(), content)
            for change, content in zip(plan.changes, plan.contents, strict=True)
        )
    return Preview(_result(plan), changes)


def refuse_nested(directory: Path) -> None:
    """Raise OpwestError for a new project inside another one."""
    if os.path.lexists(directory / disk.LOCK):
        return
    for parent in Path(os.path.realpath(directory)).parents:
        if os.path.lexists(parent / disk.LOCK):
            message = f"the directory is inside another opwest project, {parent}"
            raise fail(message, directory, hint="choose a directory outside that project")


def _result(plan: Plan) -> WriteResult:
    written, removed, kept, merged = map(tuple, (plan.written, plan.removed, plan.kept, plan.merged))
    return WriteResult(written, plan.unchanged, removed, kept, merged, tuple(plan.remarks))


def write_list(file: Path, paths: Sequence[Path]) -> None:
    """Write absolute paths, one per line: the dependencies of the generation for a build system."""
    with system_faults(file, "cannot write the list of inputs"):
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = dict.fromkeys(spelled(path.absolute()) for path in paths)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_dependencies(file: Path, paths: Sequence[Path]) -> None:
    """Write absolute paths as the dependencies of the target `file` without its suffix, in the syntax of make."""
    with system_faults(file, "cannot write the dependencies"):
        file.parent.mkdir(parents=True, exist_ok=True)
        words = dict.fromkeys(in_make(path.absolute()) for path in (file.with_suffix(""), *paths))
        target, *others = words
        file.write_text(" \\\n  ".join([f"{target}:", *others]) + "\n", encoding="utf-8")


def read_record(directory: Path) -> dict[str, Any] | None:
    """Return the record of the project in `directory`, None if it is not a project; read-only."""
    with system_faults(directory, "cannot read the project"):
        lock = read_lock(directory)
    return None if lock is None else dict(lock.record)


def recover(directory: Path) -> Literal["nothing", "rolled forward", "rolled back"]:
    """Complete or revert an interrupted run in `directory`."""
    with system_faults(directory, "cannot complete an interrupted run", _UNFINISHED):
        if not journal.is_pending(directory):
            return "nothing"
        with journal.held(directory):
            return journal.resume(directory)


def _apply(directory: Path, plan: Plan) -> None:
    change = plan.journal(directory)
    try:
        journal.stage(directory, change, plan.contents)
        journal.publish(directory, change)
        journal.execute(directory, change)
    except OSError:
        if os.path.lexists(directory / disk.JOURNAL):
            with system_faults(directory, "cannot complete the new project, nor restore the old one", _UNFINISHED):
                journal.revert(directory, change)
        with contextlib.suppress(OSError):
            journal.clean(directory)
        raise
    with contextlib.suppress(OSError):  # the change is complete; the next run removes a remaining stage
        journal.clean(directory)


def _refuse_foreign(directory: Path) -> None:
    """Raise OpwestError unless `directory` is absent, empty or a project of opwest."""
    if not os.path.lexists(directory):
        return
    if not directory.is_dir():
        raise fail("not a directory", directory, hint="choose a new or empty directory")
    names = {entry.name for entry in directory.iterdir()}
    if not names:
        return
    if disk.OWN in names and disk.is_folder(directory / disk.OWN):
        own = {f"{disk.OWN}/{entry.name}" for entry in (directory / disk.OWN).iterdir()}
        if own & {disk.LOCK, disk.ORIGIN, disk.JOURNAL, disk.MUTEX}:
            return
        if names == {disk.OWN} and own <= {disk.STAGE}:  # a first run, interrupted before its mutex: no data to lose
            return
    message = "the directory is not empty and was not created by opwest"
    raise fail(message, directory, hint="choose a new directory, or empty this one")


def _make_own_folder(directory: Path) -> None:
    missing = [place for place in (directory / disk.OWN, directory, *directory.parents) if not place.is_dir()]
    for place in reversed(missing):
        try:
            disk.make_folder(place)
        except FileExistsError:  # created by another opwest process, or a file with this name exists
            if not place.is_dir():
                raise
