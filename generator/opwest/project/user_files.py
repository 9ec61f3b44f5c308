# SPDX-License-Identifier: Apache-2.0
"""The planned changes of a run: the rules for opwest's files and for the user's.

The base of a user's file (see lock.py) is the generated content when the file was written or last merged.
`generate` never changes a user's file again, nor its base; `update` merges and replaces the base.
Only text that opwest rendered is merged. Other files (not text, or copies of the user's files) are replaced until
the user edits them; afterwards new content is written to a second file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Final, Literal, get_args

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.files import Owner, ProjectFile, is_inside
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import folded, spelled
from opwest.project import demo, disk
from opwest.project.disk import decoded, is_digest
from opwest.project.journal import Change, Journal
from opwest.project.lock import Lock
from opwest.project.merge import marker_lines, merge_text

RemarkKind = Literal[
    "conflict",  # both sides changed the same lines; `lines` are the first lines of the markers
    "beside",  # both sides changed a file that is not merged; the new content is in `other`
    "unresolved",  # the file contains markers of an earlier conflict, at `lines`
    "rewritten",  # kept: the demo, which the user replaced
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

    def is_same(self, path: str, current: str | None, *digests: str | None) -> bool:
        """Whether the file at `path`, with the checksum `current`, has one of the contents, with any line ends."""
        if not is_digest(current):
            return False
        return current in digests or disk.digest_with_lf(self.directory / path) in digests

    def write(self, path: str, current: str | None, content: bytes) -> None:
        """Plan to write a file, and count it in the summary."""
        self.plan.add(path, current, content)
        self.plan.written.append(path)

    def remove(self, path: str, current: str) -> None:
        """Plan to remove a file that is no longer generated."""
        self.plan.add(path, current, None)
        self.plan.removed.append(path)
        self._removed[folded(path)] = path

    def write_own(self, path: str, content: bytes) -> None:
        """Plan to write an internal file of opwest, replacing any existing file."""
        current = disk.look(self.directory, path)
        if self.is_same(path, current, disk.digest(content)):
            return
        if current is None or is_digest(current):
            self.plan.add(path, current, content)
        else:
            self.fault(path, f"{current} in place of an internal file of opwest", "delete it and run opwest again")

    def remove_own(self, path: str) -> None:
        """Plan to remove an internal file of opwest."""
        current = disk.look(self.directory, path)
        if is_digest(current):
            self.plan.add(path, current, None)

    def is_renamed_in_case(self, path: str) -> bool:
        """Report a file to be written whose name differs only in case from a file to be removed."""
        old = self._removed.get(folded(path))
        place = self.directory / path
        if old is None or not place.exists() or not place.samefile(self.directory / old):
            return False
        message = f"the new name {path} differs only in case, which this file system does not distinguish"
        self.fault(old, message, "delete the file and generate again")
        return True

    def write_over(self, path: str, current: str, content: bytes) -> None:
        """Plan a write over an entry other than a file: an error, unless this generation removes the entry."""
        blocker = disk.obstacle(self.directory, path)
        removed = set(self.plan.removed)
        if current == disk.FOLDER and self._is_emptied(path, removed):
            self.write(path, None, content)
        elif current == disk.FOLDER:
            self.fault(path, "a directory in place of a generated file", "move or rename the directory")
        elif current == disk.BELOW_FILE and blocker and blocker[0] in removed:
            self.write(path, None, content)
        elif current == disk.BELOW_FILE and blocker:
            self.fault(blocker[0], f"a file in place of a directory (for {path})", "move or rename the file")
        elif current == disk.BEHIND_LINK and blocker:
            self.fault(
                blocker[0],
                f"opwest does not write through a symbolic link (for {path})",
                "replace the link with a directory",
            )
        elif current == disk.LINK:
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


BESIDE: Final = ".opwest-new"

_NOTHING: Final = (None, disk.BELOW_FILE)


class UserFiles:
    """Plans the user's files one at a time, and collects their entries for the new lock."""

    def __init__(self, rules: Rules, *, merging: bool) -> None:
        """With `merging`, files are merged with the new content; without, they are not changed."""
        self._rules = rules
        self._plan = rules.plan
        self._old = rules.old
        self._merging = merging
        self.user = set(rules.old.user)
        self.bases: dict[str, str] = {}
        self.deleted: set[str] = set()
        self._before = rules.old.texts
        self.texts: dict[str, str] = {}
        self._copies: set[str] = set()

    def generated(self, path: str, content: bytes, *, copy: bool) -> None:
        """Plan a user's file of this generation, or a `copy` of a file outside the project."""
        if copy:
            self._copies.add(path)
        current = disk.look(self._rules.directory, path)
        known, handed_over = path in self._old.user, path in self._old.files
        if known and current in _NOTHING:
            self._keep_deleted(path)
        elif not known and not handed_over:
            self._new(path, current, content)
        elif self._rules.is_same(path, current, disk.digest(content)):
            self._record_base(path, content)
            self._plan.kept.append(path)
        elif current is None or (handed_over and self._rules.is_same(path, current, self._old.files[path])):
            self._write(path, current, content)
        elif not is_digest(current):
            self._keep_link(path, current, content, known=known)
        elif self._merging:
            self._update(path, content)
        else:
            self._keep(path, content)

    def no_longer_generated(self, path: str) -> None:
        """Plan a user's file of an earlier generation that is no longer generated."""
        current = disk.look(self._rules.directory, path)
        if not self._merging or current in _NOTHING:
            self._keep_base(path)
        elif current is not None and self._rules.is_same(path, current, self._old.bases.get(path)):
            self._rules.remove(path, current)
            self.user.discard(path)
        else:
            self._plan.remark("released", path)
            self.user.discard(path)

    def _new(self, path: str, current: str | None, content: bytes) -> None:
        if current is None:
            self._write(path, None, content)
        elif is_digest(current) or current == disk.LINK or (self._rules.directory / path).is_file():
            self._plan.kept.append(path)
            if current != disk.digest(content) and self._merging:
                self._plan.remark("foreign", path)
        else:
            self._rules.write_over(path, current, content)
            self._record_base(path, content)

    def _keep_link(self, path: str, current: str, content: bytes, *, known: bool) -> None:
        if known or current == disk.LINK or (self._rules.directory / path).is_file():
            self._keep_with_base(path)
            if self._merging and self._old.bases.get(path) != disk.digest(content):
                self._plan.remark("linked", path)
        else:
            self._rules.write_over(path, current, content)
            self._record_base(path, content)

    def _keep_deleted(self, path: str) -> None:
        self._keep_base(path)
        if self._merging and path not in self._old.deleted:
            self._plan.remark("deleted", path)
            self.deleted.add(path)

    def _keep(self, path: str, content: bytes) -> None:
        """Keep a file, with a remark if the new content differs from its base."""
        self._keep_with_base(path)
        if path in self.bases and self.bases[path] != disk.digest(content):
            yours = (self._rules.directory / path).read_bytes()
            self._plan.remark("rewritten" if self._is_rewritten(path, yours) else "stale", path)

    def _update(self, path: str, content: bytes) -> None:
        yours = (self._rules.directory / path).read_bytes()
        current, base, new = disk.digest(yours), self._old.bases.get(path), disk.digest(content)
        if lines := marker_lines(yours):
            self._plan.remark("unresolved", path, lines=lines)
            self._keep_with_base(path)
        elif current == base:
            self._write(path, current, content)
        elif base == new:
            self._keep_with_base(path)
        elif path in self._copies and self._rules.is_same(path, current, base):
            self._write(path, current, content)
        elif base is not None and (path in self._copies or decoded(content) is None):
            self._put_beside(path, content)
        elif path not in self._before:
            self._plan.kept.append(path)
            self._plan.remark("unknown", path)
            self._record_base(path, content)
        elif self._is_rewritten(path, yours):
            self._plan.kept.append(path)
            self._plan.remark("rewritten", path)
            self._record_base(path, content)
        elif path == demo.PATH and demo.is_only_formatted(self._before[path], decoded(yours) or ""):
            self._write(path, current, content)
        else:
            self._merge(path, self._before[path], yours, content)

    def _is_rewritten(self, path: str, yours: bytes) -> bool:
        """Whether a file is the demo, replaced by a program of the user."""
        text = decoded(yours)
        is_text = path == demo.PATH and path in self._before and text is not None
        return is_text and demo.is_rewritten(self._before[path], text or "")

    def _merge(self, path: str, before: str, yours: bytes, content: bytes) -> None:
        merged = merge_text(before.encode(), yours, content)
        is_split = merged is not None and merged.conflicts and path == demo.PATH
        if merged is None or (is_split and demo.has_other_layout(before, yours.decode())):
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
            current = disk.look(self._rules.directory, other)
            if current is None:
                self._rules.write(other, None, content)
            if current in (None, disk.digest(content)):
                return other
            number += 1

    def _write(self, path: str, current: str | None, content: bytes) -> None:
        """Plan to write a file; the new content is its base."""
        self._rules.write(path, current, content)
        self._record_base(path, content)

    def _keep_with_base(self, path: str) -> None:
        """Keep a file and its base."""
        self._plan.kept.append(path)
        self.user.add(path)
        self._keep_base(path)

    def _record_base(self, path: str, content: bytes) -> None:
        """Record that the user's file includes the new content."""
        self.user.add(path)
        self.bases[path] = disk.digest(content)
        text = None if path in self._copies else decoded(content)
        if text is not None:
            self.texts[path] = text

    def _keep_base(self, path: str) -> None:
        """Keep the recorded state of a file."""
        base = self._old.bases.get(path)
        if base is not None:
            self.bases[path] = base
        if path in self._before:
            self.texts[path] = self._before[path]
        if path in self._old.deleted and disk.look(self._rules.directory, path) in _NOTHING:
            self.deleted.add(path)


def check_paths(files: Sequence[ProjectFile]) -> None:
    """Raise ValueError for invalid paths (a bug of the caller)."""
    spelling = {folded(disk.OWN): disk.OWN}
    taken = {folded(name) for name in (disk.LOCK, disk.JOURNAL, disk.MUTEX, disk.STAGE)}
    folders = {folded(disk.OWN)}
    owners = get_args(Owner)
    for file in files:
        path = str(file.path)
        if not is_inside(path):
            raise ValueError(f"not a path in the project: {path!r}")
        if file.owner not in owners:
            raise ValueError(f"not an owner: {file.owner!r}")
        names = (*disk.parents(path), path)
        *parents, own = keys = [folded(name) for name in names]
        for name, key in zip(names, keys, strict=True):
            if (other := spelling.setdefault(key, name)) != name:
                raise ValueError(f"paths that differ only in case: {other!r} and {name!r}")
        folders.update(parents)
        if own in taken:
            raise ValueError(f"duplicate or reserved path: {path!r}")
        taken.add(own)
    if both := sorted(spelling.get(name, name) for name in taken & folders):
        raise ValueError(f"both a file and a directory: {both[0]!r}")


def decide(directory: Path, files: Sequence[ProjectFile], old: Lock, record: str, *, merging: bool = False) -> Plan:
    """Compare the generated files with the lock and the disk; raise OpwestError with all conflicts.

    `record` is the text of the record in the new lock.
    With `merging`, files of the user are merged with the new content; without, they are not changed.
    """
    rules = Rules(directory, old)
    users = UserFiles(rules, merging=merging)
    by_path = {str(file.path): file for file in sorted(files, key=lambda file: str(file.path))}
    for path in sorted(old.files.keys() - by_path.keys()):
        _no_longer_generated(path, rules)
    for path in sorted(old.user - by_path.keys()):
        users.no_longer_generated(path)
    own: dict[str, str] = {}
    for path, file in by_path.items():
        if rules.is_renamed_in_case(path):
            continue
        if file.owner == "generator":
            own[path] = disk.digest(file.content)
            users.user.discard(path)
            _generated(path, file.content, rules)
        elif file.owner == "local":
            rules.write_own(path, file.content)
        else:
            users.generated(path, file.content, copy=file.owner == "copy")
    for path in old.outdated:
        rules.remove_own(path)
    rules.faults.raise_if_errors()
    plan = rules.plan
    plan.kept.sort()
    plan.written.sort()
    lock = Lock({}, own, frozenset(users.user), users.bases, frozenset(users.deleted), users.texts)
    content = lock.with_record(record)
    current = disk.look(directory, disk.LOCK)
    if not rules.is_same(disk.LOCK, current, disk.digest(content)):
        plan.add(disk.LOCK, current, content)
    return plan


def _no_longer_generated(path: str, rules: Rules) -> None:
    """Plan a file of opwest that is no longer generated."""
    current = disk.look(rules.directory, path)
    if current is not None and rules.is_same(path, current, rules.old.files[path]):
        rules.remove(path, current)
    elif current not in _NOTHING:
        rules.plan.kept.append(path)


def _generated(path: str, content: bytes, rules: Rules) -> None:
    """Plan a file of opwest of this generation."""
    current = disk.look(rules.directory, path)
    if rules.is_same(path, current, disk.digest(content)):
        rules.plan.unchanged += 1
    elif current is None or rules.is_same(path, current, rules.old.files.get(path), rules.old.bases.get(path)):
        rules.write(path, current, content)
    elif not is_digest(current):
        rules.write_over(path, current, content)
    elif path in rules.old.files:
        rules.fault(
            path,
            "the file was edited; opwest does not overwrite it",
            "move your edits to another file and delete this one; the next generation restores it",
        )
    else:
        yours = " (an earlier version of opwest generated it for you to edit)" if path in rules.old.user else ""
        hint = "move or rename your file, then generate again"
        rules.fault(path, f"the file was not written by opwest; opwest does not overwrite it{yours}", hint)
