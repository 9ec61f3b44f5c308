# SPDX-License-Identifier: Apache-2.0
"""What has to happen to a project folder, decided before anything is touched."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from opwest.diagnostics import Diagnostics, Location

from . import disk
from .journal import Change, Journal
from .lock import Lock, is_digest, is_inside


@dataclass(frozen=True)
class ProjectFile:
    """One file to write; a user's file is written once and then never touched again."""

    path: PurePosixPath
    content: bytes
    owner: Literal["generator", "user"]


@dataclass
class Plan:
    """The changes with their contents, and what is reported of them."""

    changes: list[Change] = field(default_factory=list)
    contents: list[bytes | None] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    unchanged: int = 0

    def add(self, path: str, old: str | None, content: bytes | None) -> None:
        """Add one change of a file."""
        self.changes.append(Change(path, old, None if content is None else disk.digest(content)))
        self.contents.append(content)

    def journal(self, directory: Path) -> Journal:
        """Return the changes as a journal, with the folders that come and go."""
        needed = {parent for path in self.written for parent in disk.parents(path)}
        created = {parent for parent in needed if not disk.is_folder(directory / parent)}
        emptied = {parent for path in self.removed for parent in disk.parents(path)} - needed
        return Journal(tuple(self.changes), tuple(sorted(created)), tuple(sorted(emptied)))


def check_paths(wanted: Sequence[ProjectFile]) -> None:
    """Raise ValueError for paths that a correct caller never gives."""
    spelling = {_folded(disk.OWN): disk.OWN}
    taken = {_folded(name) for name in (disk.LOCK, disk.JOURNAL, disk.MUTEX, disk.STAGE)}
    folders = {_folded(disk.OWN)}
    for file in wanted:
        path = str(file.path)
        if not is_inside(path):
            raise ValueError(f"not a path in the project: {path!r}")
        if file.owner not in ("generator", "user"):
            raise ValueError(f"not an owner: {file.owner!r}")
        for name in (*disk.parents(path), path):
            if (other := spelling.setdefault(_folded(name), name)) != name:
                raise ValueError(f"paths that differ only in case: {other!r} and {name!r}")
        folders.update(_folded(parent) for parent in disk.parents(path))
        if _folded(path) in taken:
            raise ValueError(f"path given twice, or reserved: {path!r}")
        taken.add(_folded(path))
    if both := sorted(spelling.get(name, name) for name in taken & folders):
        raise ValueError(f"both a file and a folder: {both[0]!r}")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def decide(directory: Path, wanted: Sequence[ProjectFile], old: Lock, record: Mapping[str, Any]) -> Plan:
    """Compare what is wanted with the lock and the disk; raise OpwestError with every conflict."""
    return _Decision(directory, old).run(sorted(wanted, key=lambda file: str(file.path)), record)


class _Decision:
    """The rules, one method each."""

    def __init__(self, directory: Path, old: Lock) -> None:
        self.directory = directory
        self.old = old
        self.plan = Plan()
        self.faults = Diagnostics()
        self.going: dict[str, str] = {}

    def run(self, wanted: Sequence[ProjectFile], record: Mapping[str, Any]) -> Plan:
        paths = {str(file.path) for file in wanted}
        for path in sorted(set(self.old.files) - paths):
            self._no_longer_generated(path)
        own: dict[str, str] = {}
        user = set(self.old.user)
        for file in wanted:
            path = str(file.path)
            if self._is_renamed_in_case(path):
                continue
            if file.owner == "generator":
                own[path] = disk.digest(file.content)
                user.discard(path)
                self._generators(path, file.content)
            elif self._users(path, file.content):
                user.add(path)
        self.faults.raise_if_errors()
        self.plan.kept.sort()
        content = Lock(record, own, frozenset(user)).to_bytes()
        found = disk.look(self.directory, disk.LOCK)
        if found != disk.digest(content):
            self.plan.add(disk.LOCK, found, content)
        return self.plan

    def _is_renamed_in_case(self, path: str) -> bool:
        """Report a file that is to be written, and to be removed under another spelling of its name."""
        old = self.going.get(_folded(path))
        place = self.directory / path
        if old is None or not place.exists() or not place.samefile(self.directory / old):
            return False
        message = f"the name changes only in case, to {path}, which this file system cannot tell apart"
        self._fault(old, message, "delete the file and generate again")
        return True

    def _no_longer_generated(self, path: str) -> None:
        found = disk.look(self.directory, path)
        if found == self.old.files[path]:
            self.plan.add(path, found, None)
            self.plan.removed.append(path)
            self.going[_folded(path)] = path
        elif found not in (None, disk.BELOW_FILE):
            self.plan.kept.append(path)

    def _generators(self, path: str, content: bytes) -> None:
        found = disk.look(self.directory, path)
        if found == disk.digest(content):
            self.plan.unchanged += 1
        elif found is None or found == self.old.files.get(path):
            self._write(path, found, content)
        elif not is_digest(found):
            self._in_the_way(path, found, content)
        elif path in self.old.files:
            self._fault(
                path,
                "the file was edited, and opwest would overwrite it",
                "move your edits out of this file and delete it: generating again restores it",
            )
        else:
            yours = " (it was given to you by an earlier opwest)" if path in self.old.user else ""
            hint = "move or rename your file, then generate again"
            self._fault(path, f"the file was not written by opwest, and opwest would overwrite it{yours}", hint)

    def _users(self, path: str, content: bytes) -> bool:
        """Plan a user's file; return whether opwest has written it, now or before."""
        found = disk.look(self.directory, path)
        if path in self.old.user:
            if found not in (None, disk.BELOW_FILE):
                self.plan.kept.append(path)
            return True
        handed_over = path in self.old.files
        if found is None or (handed_over and found == self.old.files[path] != disk.digest(content)):
            self._write(path, found, content)
            return True
        if is_digest(found) or found == disk.LINK or (self.directory / path).is_file():
            self.plan.kept.append(path)
            return handed_over
        self._in_the_way(path, found, content)
        return True

    def _write(self, path: str, found: str | None, content: bytes) -> None:
        self.plan.add(path, found, content)
        self.plan.written.append(path)

    def _in_the_way(self, path: str, found: str, content: bytes) -> None:
        """Plan a write where something other than a file is: a fault, unless it goes with this generation."""
        blocker = disk.obstacle(self.directory, path)
        going = set(self.plan.removed)
        if found == disk.FOLDER and self._goes(path, going):
            self._write(path, None, content)
        elif found == disk.FOLDER:
            self._fault(path, "a folder is where opwest would write a file", "move or rename the folder")
        elif found == disk.BELOW_FILE and blocker and blocker[0] in going:
            self._write(path, None, content)
        elif found == disk.BELOW_FILE and blocker:
            self._fault(blocker[0], f"a file is where opwest needs a folder (for {path})", "move or rename the file")
        elif found == disk.BEHIND_LINK and blocker:
            self._fault(
                blocker[0],
                f"opwest does not write through a symbolic link (for {path})",
                "replace the link by a real folder",
            )
        elif found == disk.LINK:
            hint = "delete the link and generate again"
            self._fault(path, "opwest does not write through a symbolic link", hint)
        else:
            self._fault(path, "a special file is where opwest would write", "move or rename it")

    def _goes(self, folder: str, going: set[str]) -> bool:
        """Whether nothing is left of `folder` once the files `going` are removed."""
        vanishing = going | {parent for path in going for parent in disk.parents(path)}
        inside = {entry.relative_to(self.directory).as_posix() for entry in (self.directory / folder).rglob("*")}
        return bool(inside) and inside <= vanishing

    def _fault(self, path: str, message: str, hint: str) -> None:
        self.faults.error(message, Location(str(self.directory / path)), hint=hint)
