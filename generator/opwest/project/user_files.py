# SPDX-License-Identifier: Apache-2.0
"""The rules for the user's files.

The base of a user's file (see bases.py) is the generated content when the file was written or last merged.
`generate` never changes a user's file again, nor its base; `update` merges and replaces the base.
Only text that opwest rendered is merged. Other files (not text, or copies of the user's files) are replaced until
the user edits them; afterwards new content is written to a second file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from opwest.base.files import Owner, ProjectFile, is_inside
from opwest.base.paths import folded
from opwest.project import disk, lock
from opwest.project.changes import Merging, Plan, Rules
from opwest.project.lock import BASES, Lock, is_digest

BESIDE: Final = ".opwest-new"

_NOTHING: Final = (None, disk.BELOW_FILE)


class UserFiles:
    """Plans the user's files one at a time, and collects their entries for the new lock."""

    def __init__(self, rules: Rules, merging: Merging | None) -> None:
        self._rules = rules
        self._plan = rules.plan
        self._old = rules.old
        self._merging = merging
        self.user = set(rules.old.user)
        self.bases: dict[str, str] = {}
        self.deleted: set[str] = set()
        self._before = lock.read_bases(rules.directory, rules.old.bases)
        self._texts: dict[str, str] = {}
        self._copies: set[str] = set()

    def generated(self, path: str, content: bytes, *, copy: bool) -> None:
        """Plan a user's file of this generation, or a `copy` of a file outside the project."""
        if copy:
            self._copies.add(path)
        found = disk.look(self._rules.directory, path)
        known, handed_over = path in self._old.user, path in self._old.files
        if known and found in _NOTHING:
            self._keep_deleted(path)
        elif not known and not handed_over:
            self._new(path, found, content)
        elif self._rules.is_same(path, found, disk.digest(content)):
            self._record_base(path, content)
            self._plan.kept.append(path)
        elif found is None or (handed_over and self._rules.is_same(path, found, self._old.files[path])):
            self._rules.write(path, found, content)
            self._record_base(path, content)
        elif not is_digest(found):
            self._keep_link(path, found, content, known=known)
        elif self._merging is None:
            self._keep(path, content)
        else:
            self._update(path, content, self._merging)

    def no_longer_generated(self, path: str) -> None:
        """Plan a user's file of an earlier generation that is no longer generated."""
        found = disk.look(self._rules.directory, path)
        if self._merging is None or found in _NOTHING:
            self._keep_base(path)
        elif found is not None and self._rules.is_same(path, found, self._old.bases.get(path)):
            self._rules.remove(path, found)
            self.user.discard(path)
        else:
            self._plan.remark("released", path)
            self.user.discard(path)

    def plan_bases(self) -> None:
        """Plan the file of the bases."""
        if self._texts:
            self._rules.write_own(lock.BASES, lock.to_bytes(self._texts))
        else:
            self._rules.remove_own(lock.BASES)
        for path in sorted(self._old.bases):
            self._rules.remove_own(lock.old_place(path))

    def _new(self, path: str, found: str | None, content: bytes) -> None:
        if found is None:
            self._rules.write(path, None, content)
            self._record_base(path, content)
        elif is_digest(found) or found == disk.LINK or (self._rules.directory / path).is_file():
            self._plan.kept.append(path)
            if found != disk.digest(content) and self._merging:
                self._plan.remark("foreign", path)
        else:
            self._rules.write_over(path, found, content)
            self._record_base(path, content)

    def _keep_link(self, path: str, found: str, content: bytes, *, known: bool) -> None:
        if known or found == disk.LINK or (self._rules.directory / path).is_file():
            self._plan.kept.append(path)
            self.user.add(path)
            self._keep_base(path)
            if self._merging and self._old.bases.get(path) != disk.digest(content):
                self._plan.remark("linked", path)
        else:
            self._rules.write_over(path, found, content)
            self._record_base(path, content)

    def _keep_deleted(self, path: str) -> None:
        self._keep_base(path)
        if self._merging and path not in self._old.deleted:
            self._plan.remark("deleted", path)
            self.deleted.add(path)

    def _keep(self, path: str, content: bytes) -> None:
        """Keep a file, with a remark if the new content differs from its base."""
        self._plan.kept.append(path)
        self.user.add(path)
        self._keep_base(path)
        if path in self.bases and self.bases[path] != disk.digest(content):
            self._plan.remark("stale", path)

    def _update(self, path: str, content: bytes, merging: Merging) -> None:
        yours = (self._rules.directory / path).read_bytes()
        found, base, new = disk.digest(yours), self._old.bases.get(path), disk.digest(content)
        self.user.add(path)
        if lines := merging.markers(yours):
            self._plan.remark("unresolved", path, lines=lines)
            self._plan.kept.append(path)
            self._keep_base(path)
        elif found == base:
            self._rules.write(path, found, content)
            self._record_base(path, content)
        elif base == new:
            self._plan.kept.append(path)
            self._keep_base(path)
        elif path in self._copies and self._rules.is_same(path, found, base):
            self._rules.write(path, found, content)
            self._record_base(path, content)
        elif base is not None and (path in self._copies or lock.decoded(content) is None):
            self._put_beside(path, content)
        elif path not in self._before:
            self._plan.kept.append(path)
            self._plan.remark("unknown", path)
            self._record_base(path, content)
        else:
            self._merge(path, self._before[path].encode(), yours, content, merging)

    def _merge(self, path: str, before: bytes, yours: bytes, content: bytes, merging: Merging) -> None:
        merged = merging.merge(before, yours, content)
        if merged is None:
            self._put_beside(path, content)
            return
        if merged.content == yours:
            self._plan.kept.append(path)
        else:
            self._plan.add(path, disk.digest(yours), merged.content)
            self._plan.merged.append(path)
            if merged.conflicts:
                self._plan.remark("conflict", path, lines=merged.conflicts)
        self._record_base(path, content)

    def _put_beside(self, path: str, content: bytes) -> None:
        """Keep the user's file, and plan to write the new content to a second file."""
        self._plan.kept.append(path)
        self._plan.remark("beside", path, other=self._write_beside(path, content))
        self._record_base(path, content)

    def _write_beside(self, path: str, content: bytes) -> str:
        """Plan to write a file under an unused name; return the name."""
        number = 1
        while True:
            other = f"{path}{BESIDE}{number if number > 1 else ''}"
            found = disk.look(self._rules.directory, other)
            if found is None:
                self._rules.write(other, None, content)
            if found in (None, disk.digest(content)):
                return other
            number += 1

    def _record_base(self, path: str, content: bytes) -> None:
        """Record that the user's file includes the new content."""
        self.user.add(path)
        self.bases[path] = disk.digest(content)
        text = None if path in self._copies else lock.decoded(content)
        if text is not None:
            self._texts[path] = text

    def _keep_base(self, path: str) -> None:
        """Keep the recorded state of a file."""
        base = self._old.bases.get(path)
        if base is not None:
            self.bases[path] = base
        if path in self._before:
            self._texts[path] = self._before[path]
        if path in self._old.deleted and disk.look(self._rules.directory, path) in _NOTHING:
            self.deleted.add(path)


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
