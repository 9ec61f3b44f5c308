# SPDX-License-Identifier: Apache-2.0
"""What has to happen to a project folder, decided before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from . import disk
from .bases import BASES
from .changes import Merging, Plan
from .lock import Lock, is_digest, is_inside
from .rules import Rules, folded
from .users import UserFiles

Owner = Literal["generator", "user", "copy", "local"]


@dataclass(frozen=True)
class ProjectFile:
    """One file to write; a user's file is written once and from then on only merged.

    A copy is a user's file, too, but one that the user has elsewhere: a merge would only repeat the user's own changes.
    A local file is opwest's own and says where the project lies: the lock, which is the same everywhere, has nothing
    of it.
    """

    path: PurePosixPath
    content: bytes
    owner: Owner


def check_paths(wanted: Sequence[ProjectFile]) -> None:
    """Raise ValueError for paths that a correct caller never gives."""
    spelling = {folded(disk.OWN): disk.OWN}
    taken = {folded(name) for name in (disk.LOCK, disk.JOURNAL, disk.MUTEX, disk.STAGE, BASES)}
    folders = {folded(disk.OWN)}
    for file in wanted:
        path = str(file.path)
        if not is_inside(path):
            raise ValueError(f"not a path in the project: {path!r}")
        if file.owner not in get_args(Owner):
            raise ValueError(f"not an owner: {file.owner!r}")
        for name in (*disk.parents(path), path):
            if (other := spelling.setdefault(folded(name), name)) != name:
                raise ValueError(f"paths that differ only in case: {other!r} and {name!r}")
        folders.update(folded(parent) for parent in disk.parents(path))
        if folded(path) in taken:
            raise ValueError(f"path given twice, or reserved: {path!r}")
        taken.add(folded(path))
    if both := sorted(spelling.get(name, name) for name in taken & folders):
        raise ValueError(f"both a file and a folder: {both[0]!r}")


def decide(
    directory: Path,
    wanted: Sequence[ProjectFile],
    old: Lock,
    record: Mapping[str, Any],
    merging: Merging | None = None,
) -> Plan:
    """Compare what is wanted with the lock and the disk; raise OpwestError with every conflict.

    With `merging`, files of the user are merged with what is generated now; without, they are left alone.
    """
    return _Decision(Rules(directory, old), merging).run(sorted(wanted, key=lambda file: str(file.path)), record)


class _Decision:
    """The rules, one method each; those for the user's files are in `users.py`."""

    def __init__(self, rules: Rules, merging: Merging | None) -> None:
        self.rules = rules
        self.directory = rules.directory
        self.old = rules.old
        self.plan = rules.plan
        self.users = UserFiles(rules, merging)

    def run(self, wanted: Sequence[ProjectFile], record: Mapping[str, Any]) -> Plan:
        paths = {str(file.path) for file in wanted}
        for path in sorted(set(self.old.files) - paths):
            self._no_longer_generated(path)
        for path in sorted(self.old.user - paths):
            self.users.unwanted(path)
        own: dict[str, str] = {}
        for file in wanted:
            path = str(file.path)
            if self.rules.is_renamed_in_case(path):
                continue
            if file.owner == "generator":
                own[path] = disk.digest(file.content)
                self.users.user.discard(path)
                self._generators(path, file.content)
            elif file.owner == "local":
                self.rules.write_own(path, file.content)
            else:
                self.users.wanted(path, file.content, copy=file.owner == "copy")
        self.users.settle()
        self.rules.faults.raise_if_errors()
        self.plan.kept.sort()
        self.plan.written.sort()
        lock = Lock(record, own, frozenset(self.users.user), self.users.bases, frozenset(self.users.deleted))
        found = disk.look(self.directory, disk.LOCK)
        if found != disk.digest(lock.to_bytes()):
            self.plan.add(disk.LOCK, found, lock.to_bytes())
        return self.plan

    def _no_longer_generated(self, path: str) -> None:
        found = disk.look(self.directory, path)
        if found == self.old.files[path]:
            self.rules.remove(path, found)
        elif found not in (None, disk.BELOW_FILE):
            self.plan.kept.append(path)

    def _generators(self, path: str, content: bytes) -> None:
        found = disk.look(self.directory, path)
        if found == disk.digest(content):
            self.plan.unchanged += 1
        elif found is None or found in (self.old.files.get(path), self.old.bases.get(path)):
            self.rules.write(path, found, content)
        elif not is_digest(found):
            self.rules.in_the_way(path, found, content)
        elif path in self.old.files:
            self.rules.fault(
                path,
                "the file was edited, and opwest would overwrite it",
                "move your edits out of this file and delete it: generating again restores it",
            )
        else:
            yours = " (it was given to you by an earlier opwest)" if path in self.old.user else ""
            hint = "move or rename your file, then generate again"
            self.rules.fault(path, f"the file was not written by opwest, and opwest would overwrite it{yours}", hint)
