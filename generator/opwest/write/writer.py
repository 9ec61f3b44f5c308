# SPDX-License-Identifier: Apache-2.0
"""Write a generated project: all of it or nothing, and never over what the user wrote.

The order of a run: refuse a folder that is not ours; take the mutex; finish or undo an interrupted run;
decide everything; stage it; publish the journal (from here the new project wins); move; remove the stage.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opwest.files import ProjectFile

from . import disk, journal, mutex
from .changes import Merging, Plan, Remark
from .faults import fault, system_faults
from .lock import Lock, read_lock
from .plan import check_paths, decide

__all__ = [
    "FileChange",
    "Preview",
    "WriteResult",
    "preview_project",
    "read_record",
    "recover",
    "refuse_nested",
    "write_list",
    "write_project",
]

_AS_BEFORE = "the project is as it was before"
_UNFINISHED = "the project is half written: remove the cause and run opwest again, which completes it"


@dataclass(frozen=True)
class WriteResult:
    """What a run did: files written and removed, how many were the same, and user's files left alone or merged."""

    written: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    merged: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class FileChange:
    """What a run would do to one file; None where there is none."""

    path: str
    old: bytes | None
    new: bytes | None


@dataclass(frozen=True)
class Preview:
    """What a run would do."""

    result: WriteResult
    changes: tuple[FileChange, ...]


def write_project(
    directory: Path, files: Sequence[ProjectFile], record: Mapping[str, Any], *, merging: Merging | None = None
) -> WriteResult:
    """Make `directory` the project of exactly `files`; `record` is kept for `read_record`.

    With `merging`, files of the user are merged with what is generated now; without, they are left alone.
    """
    _check(files, record)
    with system_faults(directory, "cannot write the project", _AS_BEFORE):
        _refuse_foreign(directory)
        _make_own_folder(directory)
        with mutex.held(directory):
            with system_faults(directory, "cannot complete an interrupted run", _UNFINISHED):
                journal.resume(directory)
            plan = decide(directory, files, read_lock(directory) or Lock(), record, merging)
            if plan.changes:
                _carry_out(directory, plan)
    return _result(plan)


def preview_project(
    directory: Path, files: Sequence[ProjectFile], record: Mapping[str, Any], *, merging: Merging | None = None
) -> Preview:
    """Return what `write_project` would do; nothing is written."""
    _check(files, record)
    with system_faults(directory, "cannot read the project"):
        _refuse_foreign(directory)
        if journal.is_pending(directory):
            message = (
                "a run of opwest was interrupted here: what it would have done is not known before it is completed"
            )
            raise fault(directory, message, "run the command that was interrupted again, or `opwest update`")
        plan = decide(directory, files, read_lock(directory) or Lock(), record, merging)
        changes = tuple(
            FileChange(
                change.path,
                None if change.old is None else (directory / change.path).read_bytes(),
                content,
            )
            for change, content in zip(plan.changes, plan.contents, strict=True)
        )
    return Preview(_result(plan), changes)


def refuse_nested(directory: Path) -> None:
    """Raise where a new project would lie inside another one."""
    if os.path.lexists(directory / disk.LOCK):
        return
    for parent in Path(os.path.realpath(directory)).parents:
        if os.path.lexists(parent / disk.LOCK):
            message = f"this folder is inside another opwest project, {parent}"
            raise fault(directory, message, "choose a folder outside of it")


def _check(files: Sequence[ProjectFile], record: Mapping[str, Any]) -> None:
    check_paths(files)
    Lock(record).to_bytes()  # a record that is not JSON is a programmer's fault: before anything is touched


def _result(plan: Plan) -> WriteResult:
    return WriteResult(
        tuple(plan.written),
        plan.unchanged,
        tuple(plan.removed),
        tuple(plan.kept),
        tuple(plan.merged),
        tuple(plan.remarks),
    )


def write_list(file: Path, paths: Sequence[Path]) -> None:
    """Write absolute paths, one a line: what a build system looks at to know when to run again."""
    with system_faults(file, "cannot write the list of inputs"):
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = dict.fromkeys(path.absolute().as_posix() for path in paths)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_record(directory: Path) -> dict[str, Any] | None:
    """Return the record of the project in `directory`, None if it is not one; only reads."""
    with system_faults(directory, "cannot read the project"):
        lock = read_lock(directory)
    return None if lock is None else dict(lock.record)


def recover(directory: Path) -> Literal["nothing", "rolled forward", "rolled back"]:
    """Finish or undo what an interrupted run left in `directory`."""
    with system_faults(directory, "cannot complete an interrupted run", _UNFINISHED):
        if not journal.is_pending(directory):
            return "nothing"
        with mutex.held(directory):
            return journal.resume(directory)


def _carry_out(directory: Path, plan: Plan) -> None:
    change = plan.journal(directory)
    try:
        journal.stage(directory, change, plan.contents)
        journal.publish(directory, change)
        journal.execute(directory, change)
    except OSError:
        if os.path.lexists(directory / disk.JOURNAL):
            with system_faults(directory, "cannot complete the project, nor bring the old one back", _UNFINISHED):
                journal.turn_back(directory, change)
        with contextlib.suppress(OSError):
            journal.clean(directory)
        raise
    with contextlib.suppress(OSError):  # done: a stage that stays is removed by the next run
        journal.clean(directory)


def _refuse_foreign(directory: Path) -> None:
    """Raise unless `directory` is absent, empty or ours."""
    if not os.path.lexists(directory):
        return
    if not directory.is_dir():
        raise fault(directory, "this is not a folder", "choose a folder that is new or empty")
    names = {entry.name for entry in directory.iterdir()}
    if not names:
        return
    if disk.OWN in names and disk.is_folder(directory / disk.OWN):
        own = {f"{disk.OWN}/{entry.name}" for entry in (directory / disk.OWN).iterdir()}
        if own & {disk.LOCK, disk.JOURNAL, disk.MUTEX}:
            return
        if names == {disk.OWN} and own <= {disk.STAGE}:  # a first run, cut off before its mutex; nothing to lose
            return
    message = "the folder is not empty and was not made by opwest"
    raise fault(directory, message, "choose a new folder, or empty this one")


def _make_own_folder(directory: Path) -> None:
    missing = [place for place in (directory / disk.OWN, directory, *directory.parents) if not place.is_dir()]
    for place in reversed(missing):
        try:
            disk.make_folder(place)
        except FileExistsError:  # another opwest was faster, or a file is in the way
            if not place.is_dir():
                raise
