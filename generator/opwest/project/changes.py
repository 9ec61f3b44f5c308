# SPDX-License-Identifier: Apache-2.0
"""The planned changes of a run, with contents and remarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Literal

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import folded, spelled
from opwest.project import disk
from opwest.project.journal import Change, Journal
from opwest.project.lock import Lock, is_digest

RemarkKind = Literal[
    "conflict",  # both sides changed the same lines; `lines` are the first lines of the markers
    "beside",  # both sides changed a file that is not merged; the new content is in `other`
    "unresolved",  # the file contains markers of an earlier conflict, at `lines`
    "stale",  # kept, although the generated content differs from its base
    "unknown",  # kept: its base is unknown and recorded from now on
    "foreign",  # kept: created by the user under the name of a generated file
    "linked",  # kept: a symbolic link, whose target is not merged
    "deleted",  # deleted by the user and not restored
    "released",  # kept: no longer generated, but edited
]


@dataclass(frozen=True)
class Remark:
    """A remark about one of the user's files."""

    kind: RemarkKind
    path: str
    lines: tuple[int, ...] = ()
    other: str | None = None


@dataclass(frozen=True)
class Merged:
    """The text of a merge, and the first lines (from 1) of conflict markers."""

    content: bytes
    conflicts: tuple[int, ...] = ()


Merge = Callable[[bytes, bytes, bytes], Merged | None]
"""Merges base, user's file and new content; returns None if one of them is not text."""

FindMarkers = Callable[[bytes], tuple[int, ...]]
"""Returns the first lines of conflict markers from an earlier merge."""


@dataclass(frozen=True)
class Merging:
    """The functions that merge user's files, supplied by the caller."""

    merge: Merge
    markers: FindMarkers


@dataclass
class Plan:
    """The changes with their contents, and the remarks."""

    changes: list[Change] = field(default_factory=list)
    contents: list[bytes | None] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    unchanged: int = 0

    def add(self, path: str, old: str | None, content: bytes | None) -> None:
        """Add one change of a file."""
        self.changes.append(Change(path, old, None if content is None else disk.digest(content)))
        self.contents.append(content)

    def remark(self, kind: RemarkKind, path: str, *, lines: tuple[int, ...] = (), other: str | None = None) -> None:
        """Add a remark about a user's file."""
        self.remarks.append(Remark(kind, path, lines, other))

    def journal(self, directory: Path) -> Journal:
        """Return the changes as a journal, with created and removed directories."""
        written = [change.path for change in self.changes if change.new is not None]
        removed = [change.path for change in self.changes if change.new is None]
        needed = {parent for path in written for parent in disk.parents(path)}
        created = {parent for parent in needed if not disk.is_folder(directory / parent)}
        emptied = {parent for path in removed for parent in disk.parents(path)} - needed
        return Journal(tuple(self.changes), tuple(sorted(created)), tuple(sorted(emptied)))


class Rules:
    """An incomplete plan: the state of the lock and the disk, the changes and the errors so far."""

    def __init__(self, directory: Path, old: Lock) -> None:
        self.directory = directory
        self.old = old
        self.plan = Plan()
        self.faults = Diagnostics()
        self._removed: dict[str, str] = {}

    def is_same(self, path: str, found: str | None, *digests: str | None) -> bool:
        """Whether the file at `path`, with the checksum `found`, has one of the contents, with any line ends."""
        if not is_digest(found):
            return False
        return found in digests or disk.digest_with_lf(self.directory / path) in digests

    def write(self, path: str, found: str | None, content: bytes) -> None:
        """Plan to write a file, and count it in the summary."""
        self.plan.add(path, found, content)
        self.plan.written.append(path)

    def remove(self, path: str, found: str) -> None:
        """Plan to remove a file that is no longer generated."""
        self.plan.add(path, found, None)
        self.plan.removed.append(path)
        self._removed[folded(path)] = path

    def write_own(self, path: str, content: bytes) -> None:
        """Plan to write an internal file of opwest, replacing any existing file."""
        found = disk.look(self.directory, path)
        if self.is_same(path, found, disk.digest(content)):
            return
        if found is None or is_digest(found):
            self.plan.add(path, found, content)
        else:
            self.fault(path, f"{found} in place of an internal file of opwest", "delete it and run opwest again")

    def remove_own(self, path: str) -> None:
        """Plan to remove an internal file of opwest."""
        found = disk.look(self.directory, path)
        if is_digest(found):
            self.plan.add(path, found, None)

    def is_renamed_in_case(self, path: str) -> bool:
        """Report a file to be written whose name differs only in case from a file to be removed."""
        old = self._removed.get(folded(path))
        place = self.directory / path
        if old is None or not place.exists() or not place.samefile(self.directory / old):
            return False
        message = f"the new name {path} differs only in case, which this file system does not distinguish"
        self.fault(old, message, "delete the file and generate again")
        return True

    def write_over(self, path: str, found: str, content: bytes) -> None:
        """Plan a write over an entry other than a file: an error, unless this generation removes the entry."""
        blocker = disk.obstacle(self.directory, path)
        removed = set(self.plan.removed)
        if found == disk.FOLDER and self._is_emptied(path, removed):
            self.write(path, None, content)
        elif found == disk.FOLDER:
            self.fault(path, "a directory in place of a generated file", "move or rename the directory")
        elif found == disk.BELOW_FILE and blocker and blocker[0] in removed:
            self.write(path, None, content)
        elif found == disk.BELOW_FILE and blocker:
            self.fault(blocker[0], f"a file in place of a directory (for {path})", "move or rename the file")
        elif found == disk.BEHIND_LINK and blocker:
            self.fault(
                blocker[0],
                f"opwest does not write through a symbolic link (for {path})",
                "replace the link with a directory",
            )
        elif found == disk.LINK:
            hint = "delete the link and generate again"
            self.fault(path, "opwest does not write through a symbolic link", hint)
        else:
            self.fault(path, "a special file in place of a generated file", "move or rename it")

    def _is_emptied(self, folder: str, removed: set[str]) -> bool:
        """Whether `folder` is not empty, and empty without the files `removed`."""
        expected = removed | {parent for path in removed for parent in disk.parents(path)}
        inside = {spelled(entry.relative_to(self.directory)) for entry in (self.directory / folder).rglob("*")}
        return bool(inside) and inside <= expected

    def fault(self, path: str, message: str, hint: str) -> None:
        """Report the reason why a file cannot be written."""
        self.faults.error(message, Location(str(self.directory / path)), hint=hint)
