# SPDX-License-Identifier: Apache-2.0
"""Plan all changes of a project directory before the first one is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from opwest.base.paths import folded
from opwest.base.project_files import Owner, ProjectFile, is_inside
from opwest.project import disk
from opwest.project.changes import Merging, Plan, Rules
from opwest.project.lock import BASES, Lock, is_digest
from opwest.project.user_files import UserFiles


def check_paths(files: Sequence[ProjectFile]) -> None:
    """Raise ValueError for invalid paths (a bug of the caller)."""
    spelling = {folded(disk.OWN): disk.OWN}
    taken = {folded(name) for name in (disk.LOCK, disk.JOURNAL, disk.MUTEX, disk.STAGE, BASES)}
    folders = {folded(disk.OWN)}
    for file in files:
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
            raise ValueError(f"duplicate or reserved path: {path!r}")
        taken.add(folded(path))
    if both := sorted(spelling.get(name, name) for name in taken & folders):
        raise ValueError(f"both a file and a directory: {both[0]!r}")


def decide(
    directory: Path,
    files: Sequence[ProjectFile],
    old: Lock,
    record: Mapping[str, Any],
    merging: Merging | None = None,
) -> Plan:
    """Compare the generated files with the lock and the disk; raise OpwestError with all conflicts.

    With `merging`, files of the user are merged with the new content; without, they are not changed.
    """
    return _Decision(Rules(directory, old), merging).run(sorted(files, key=lambda file: str(file.path)), record)


class _Decision:
    """The rules for opwest's files, one method each; those for user's files are in `users.py`."""

    def __init__(self, rules: Rules, merging: Merging | None) -> None:
        self.rules = rules
        self.directory = rules.directory
        self.old = rules.old
        self.plan = rules.plan
        self.users = UserFiles(rules, merging)

    def run(self, files: Sequence[ProjectFile], record: Mapping[str, Any]) -> Plan:
        paths = {str(file.path) for file in files}
        for path in sorted(set(self.old.files) - paths):
            self._no_longer_generated(path)
        for path in sorted(self.old.user - paths):
            self.users.no_longer_generated(path)
        own: dict[str, str] = {}
        for file in files:
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
                self.users.generated(path, file.content, copy=file.owner == "copy")
        self.users.plan_bases()
        self.rules.faults.raise_if_errors()
        self.plan.kept.sort()
        self.plan.written.sort()
        lock = Lock(record, own, frozenset(self.users.user), self.users.bases, frozenset(self.users.deleted))
        found = disk.look(self.directory, disk.LOCK)
        if not self.rules.is_same(disk.LOCK, found, disk.digest(lock.to_bytes())):
            self.plan.add(disk.LOCK, found, lock.to_bytes())
        return self.plan

    def _no_longer_generated(self, path: str) -> None:
        found = disk.look(self.directory, path)
        if found is not None and self.rules.is_same(path, found, self.old.files[path]):
            self.rules.remove(path, found)
        elif found not in (None, disk.BELOW_FILE):
            self.plan.kept.append(path)

    def _generators(self, path: str, content: bytes) -> None:
        found = disk.look(self.directory, path)
        if self.rules.is_same(path, found, disk.digest(content)):
            self.plan.unchanged += 1
        elif found is None or self.rules.is_same(path, found, self.old.files.get(path), self.old.bases.get(path)):
            self.rules.write(path, found, content)
        elif not is_digest(found):
            self.rules.write_over(path, found, content)
        elif path in self.old.files:
            self.rules.fault(
                path,
                "the file was edited; opwest does not overwrite it",
                "move your edits to another file and delete this one; the next generation restores it",
            )
        else:
            yours = " (an earlier version of opwest generated it for you to edit)" if path in self.old.user else ""
            hint = "move or rename your file, then generate again"
            self.rules.fault(path, f"the file was not written by opwest; opwest does not overwrite it{yours}", hint)
