# SPDX-License-Identifier: Apache-2.0
"""The journal: once `.opwest/journal.json` exists, the change is committed and will be completed.

A change records the checksum of its file before and after. The remaining work follows from the state of the
disk, so execution of the journal can be interrupted and repeated at any step. A file with neither checksum was
edited since: it is left unchanged, and the next generation reports it.

`.opwest/stage/` contains the new contents (`new/<number>`) and links to the old ones (`old/<number>`): if a
step fails, the direction of the journal is reversed to restore the old project.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from opwest.base.commands import module
from opwest.base.diagnostics import OpwestError, fail
from opwest.base.files import is_inside
from opwest.base.frozen_dataclass import dataclass
from opwest.project import disk
from opwest.project.disk import is_digest
from opwest.project.lock import to_json

FORMAT: Final = 1
DONE: Final = "done"  # the journal's name in the stage after the last change


@dataclass(frozen=True)
class Change:
    """One file: its checksum before and after, None if it does not exist."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Journal:
    """The whole change: its files (the lock last), and the created and removed directories."""

    changes: tuple[Change, ...]
    created: tuple[str, ...]
    emptied: tuple[str, ...]
    direction: Literal["forward", "back"] = "forward"

    def to_bytes(self) -> bytes:
        """Return the content of the journal file."""
        changes = [{"path": change.path, "old": change.old, "new": change.new} for change in self.changes]
        return to_json(
            {
                "format": FORMAT,
                "changes": changes,
                "created": self.created,
                "emptied": self.emptied,
                "direction": self.direction,
            }
        )


def stage(directory: Path, journal: Journal, contents: Sequence[bytes | None]) -> None:
    """Write all contents of the change to `.opwest/stage/`; `contents` corresponds to the changes."""
    root = directory / disk.STAGE
    for folder in (root, root / "new", root / "old"):
        disk.make_folder(folder)
    for number, (change, content) in enumerate(zip(journal.changes, contents, strict=True)):
        if content is not None:
            disk.write(root / "new" / str(number), content, mode_of=directory / change.path if change.old else None)
        if change.old is not None:
            disk.preserve(directory / change.path, root / "old" / str(number))
    for draft in (journal, replace(journal, direction="back")):
        disk.write(_draft(directory, draft), draft.to_bytes())
    disk.sync_directories((root, root / "new", root / "old"))


def publish(directory: Path, journal: Journal) -> None:
    """Write the journal, which commits the change in its direction."""
    disk.replace(_draft(directory, journal), directory / disk.JOURNAL)
    disk.sync_directories([directory / disk.OWN])


def revert(directory: Path, journal: Journal) -> None:
    """Revert a published change to the old project; this requires no disk space."""
    back = replace(journal, direction="back")
    publish(directory, back)
    execute(directory, back)


def _draft(directory: Path, journal: Journal) -> Path:
    return directory / disk.STAGE / f"journal-{journal.direction}.json"


def execute(directory: Path, journal: Journal) -> None:
    """Complete a published change in its direction, and remove the journal."""
    forward = journal.direction == "forward"
    steps = [(c.path, c.old, c.new) if forward else (c.path, c.new, c.old) for c in journal.changes]
    sources = directory / disk.STAGE / ("new" if forward else "old")
    removed, created = (journal.emptied, journal.created) if forward else (journal.created, journal.emptied)
    _check_sources(directory, steps, sources)

    for path, before, after in steps:
        if after is None and before is not None and disk.look(directory, path) == before:
            disk.remove(directory / path)
    for folder in sorted(removed, key=_depth, reverse=True):
        if disk.obstacle(directory, folder) is None:
            disk.remove_folder_if_empty(directory / folder)
    for folder in sorted(created, key=_depth):
        if disk.obstacle(directory, folder) is None and not disk.is_folder(directory / folder):
            disk.make_folder(directory / folder)
    for number, (path, before, after) in enumerate(steps):
        source = sources / str(number)
        if after is not None and disk.look(directory, path) in (before, None) and os.path.lexists(source):
            disk.replace(source, directory / path)

    touched = [path for path, _, _ in steps] + [*removed, *created]
    disk.sync_directories((directory / path).parent for path in touched)
    if forward and disk.is_folder(directory / disk.STAGE):
        disk.replace(directory / disk.JOURNAL, directory / disk.STAGE / DONE)
    else:
        disk.remove(directory / disk.JOURNAL)
    disk.sync_directories([directory / disk.OWN])


def _depth(path: str) -> tuple[int, str]:
    return len(PurePosixPath(path).parts), path


def _check_sources(directory: Path, steps: Sequence[tuple[str, str | None, str | None]], sources: Path) -> None:
    """Raise, before any change, if a staged content is missing or damaged.

    If neither the content nor the file exists, the user deleted the file after it was written.
    """
    for number, (path, before, after) in enumerate(steps):
        current, source = disk.look(directory, path), disk.look(sources, str(number))
        pending = after is not None and current != after and current in (before, None)
        deleted = current is None and source is None and path != disk.LOCK
        if pending and source != after and not deleted:
            raise _damaged(directory, f"the content for {path} is missing or damaged in {disk.STAGE}")


def clean(directory: Path) -> None:
    """Remove the stage; the completed journal is removed last."""
    disk.remove_tree(directory / disk.STAGE, last=DONE)


def is_pending(directory: Path) -> bool:
    """Whether an earlier run was interrupted."""
    own = directory / disk.OWN
    if not disk.is_folder(own):
        return False
    names = {entry.name for entry in own.iterdir()}
    return not names.isdisjoint((Path(disk.JOURNAL).name, Path(disk.STAGE).name))


def resume(directory: Path) -> Literal["nothing", "rolled forward", "rolled back"]:
    """Complete or revert an interrupted run. Requires the mutex."""
    if not is_pending(directory):
        return "nothing"
    journal = _read(directory)
    root = directory / disk.STAGE
    outcome: Literal["nothing", "rolled forward", "rolled back"] = "rolled back"
    if journal is not None:
        execute(directory, journal)
        outcome = "rolled forward" if journal.direction == "forward" else "rolled back"
    elif is_digest(disk.look(directory, f"{disk.STAGE}/{DONE}")):
        outcome = "rolled forward"
    elif disk.is_folder(root) and not any(root.iterdir()):  # at the start or at the end of a run
        outcome = "nothing"
    clean(directory)
    return outcome


def _read(directory: Path) -> Journal | None:
    digest = disk.look(directory, disk.JOURNAL)
    if digest is None:
        return None
    if not is_digest(digest):
        raise _damaged(directory, f"the file is {digest}")
    try:
        value = json.loads((directory / disk.JOURNAL).read_bytes())
    except (ValueError, RecursionError) as fault:
        raise _damaged(directory, f"invalid JSON ({fault})") from None
    try:
        return _parse(value)
    except (ValueError, KeyError, TypeError):
        raise _damaged(directory, "unknown structure") from None


def _parse(value: object) -> Journal:
    if not isinstance(value, dict):
        raise ValueError
    if value["format"] != FORMAT or value["direction"] not in ("forward", "back"):
        raise ValueError
    changes = tuple(Change(**change) for change in value["changes"])
    created, emptied = tuple(value["created"]), tuple(value["emptied"])
    if not all(is_inside(path) for path in (*(change.path for change in changes), *created, *emptied)):
        raise ValueError
    if not all(sum_ is None or is_digest(sum_) for change in changes for sum_ in (change.old, change.new)):
        raise ValueError
    return Journal(changes, created, emptied, value["direction"])


def _damaged(directory: Path, reason: str) -> OpwestError:
    return fail(
        f"damaged journal of an interrupted run: {reason}",
        directory / disk.JOURNAL,
        hint="the directory may contain new and old files: restore it from version control, or delete "
        f"{disk.JOURNAL} and {disk.STAGE}, and generate again",
    )


WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the mutex of `directory`, whose `.opwest` exists; wait for another holder up to a timeout."""
    place = directory / disk.MUTEX
    deadline = time.monotonic() + WAIT_SECONDS
    while (handle := _take(place)) is None:
        if time.monotonic() >= deadline:
            raise fail(f"another opwest process is writing {directory}", hint="wait for it to finish")
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        release(place, handle)


def release(place: Path, handle: int) -> None:
    """Delete the file of the mutex, and release its lock. Windows does not delete a file that a process has open."""
    if _fcntl is not None:
        with contextlib.suppress(OSError):
            disk.remove(place)
    unlock(handle)
    os.close(handle)
    if _fcntl is None:
        with contextlib.suppress(OSError):
            place.unlink()


def _take(place: Path) -> int | None:
    """Return the locked file, None while another process holds it."""
    if not os.path.lexists(place):
        disk._step(f"create {place}")
    handle = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        # Otherwise the file was deleted during the wait.
        if lock(handle) and os.path.samestat(os.fstat(handle), place.stat()):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


_fcntl = module("fcntl")

_msvcrt = module("msvcrt")

_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


def lock(handle: int) -> bool:
    """Lock an open file; return whether no other process holds its lock. Closing the file releases the lock."""
    try:
        if _fcntl is not None:
            _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        else:
            os.lseek(handle, 0, os.SEEK_SET)
            _msvcrt.locking(handle, _msvcrt.LK_NBLCK, 1)  # the byte need not exist
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def unlock(handle: int) -> None:
    """Release the lock before the file is closed: Windows may do so only some time after the end of the process."""
    if _fcntl is None:
        with contextlib.suppress(OSError):
            os.lseek(handle, 0, os.SEEK_SET)
            _msvcrt.locking(handle, _msvcrt.LK_UNLCK, 1)
